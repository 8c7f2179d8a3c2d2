/** The parts that every step is made of. */
import { element } from "./view/elements.js";

export const card = (title, ...children) =>
  element("section", { class: "card" }, ...(title ? [element("h3", {}, title)] : []),
    ...children.filter(Boolean));

export const controls = (...children) => element("div", { class: "controls" }, ...children);

/** What may be wider than the screen: it scrolls by itself, by keys as well. */
export const scroller = (label, ...children) =>
  element("div", { class: "scroller", tabindex: "0", role: "group", "aria-label": label },
    ...children);
