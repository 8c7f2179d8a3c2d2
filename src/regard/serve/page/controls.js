/** Labelled controls; each has a name by which the focus finds it again after a redraw. */
import { element } from "./view/elements.js";

export function menu(name, label, options, chosen, onchoose) {
  const list = element("select", {
    "data-control": name,
    "aria-label": label,
    onchange: (event) => onchoose(options[event.target.selectedIndex][0]),
  });
  for (const [value, text, lang] of options) {
    list.append(element("option", { selected: value === chosen, lang }, text));
  }
  return element("label", { class: "menu" }, element("span", {}, label), list);
}

export function toggle(name, label, checked, onchange, { disabled = false, title = null } = {}) {
  const box = element("input", {
    type: "checkbox", "data-control": name, checked, disabled,
    onchange: (event) => onchange(event.target.checked),
  });
  return element("label", { class: disabled ? "toggle off" : "toggle", title }, box, label);
}

export function slider(name, label, { min, max, step = 1, value, shown = String(value) }, oninput) {
  const range = element("input", {
    type: "range", "data-control": name, "aria-label": label, "aria-valuetext": shown, min, max,
    step, oninput: (event) => oninput(Number(event.target.value)),
  });
  range.value = value;
  return element(
    "label", { class: "slider" }, element("span", {}, label), range,
    element("output", { class: "number" }, shown),
  );
}

export function button(label, onclick, { name = null, kind = "plain", ...more } = {}) {
  return element("button", { type: "button", class: kind, "data-control": name, onclick, ...more },
    label);
}

/** Redraws and gives the focus back to the control that had it. */
export function keepingFocus(root, redraw) {
  const held = document.activeElement;
  const name = root.contains(held) ? held.dataset?.control : null;
  redraw();
  const again = name && root.querySelector(`[data-control="${CSS.escape(name)}"]`);
  if (again && again !== document.activeElement) again.focus({ preventScroll: true });
}

export function saveFile(name, kind, text) {
  const blob = new Blob([text], { type: kind });
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
