/** The parts that the page is made of. */
import { built, element } from "./view/elements.js";
import { scroller } from "./view/table.js";

export { button, choices, keepingFocus, menu, toggle } from "./view/controls.js";
export { element, entry, range, said, within } from "./view/elements.js";
export { scroller, tableOf } from "./view/table.js";

const SVG = "http://www.w3.org/2000/svg";
export const svg = (name, ...parts) =>
  built((tag) => document.createElementNS(SVG, tag), name, parts);

export const card = (title, ...children) =>
  element("section.card", title && element("h3", title), ...children);

/** A card about one figure, whose name is its title. */
export const plate = (figure, ...children) =>
  card(figure.getAttribute("aria-label"), scroller(figure), ...children);

export const note = (...children) => element("p.note", ...children);

export const controls = (...children) => element("div.controls", ...children);

export const pair = (...children) => element("div.pair", ...children);

/** What is at hand but not always wanted. */
export const drawer = (title, help, ...children) =>
  element("details.card", element("summary", title), help && note(help), ...children);

/** A number with a real minus sign, but no minus zero; minus infinity, too. */
export const numberOf = (value, digits = 2) =>
  (value === -Infinity ? "−∞"
    : value.toFixed(digits).replace(/^-(?=[0.]*$)/, "").replace("-", "−"));

export function slider(name, label, { min = 0, max, step = 1, value, shown = value }, oninput) {
  const range = element("input", {
    type: "range", "data-control": name, "aria-label": label, "aria-valuetext": shown, min, max,
    step, oninput: () => oninput(Number(range.value)),
  });
  range.value = value;
  return element("label.slider", element("span", label), range,
    element("output.number", String(shown)));
}
