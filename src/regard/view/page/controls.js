/** Labelled controls; each has a name by which the focus finds it again after a redraw. */
import { element, onArrow } from "./elements.js";

export function menu(name, label, options, chosen, onchoose) {
  const choose = () => onchoose(options[list.selectedIndex][0]);
  const list = element("select",
    { "data-control": name, "aria-label": label, onchange: choose },
    options.map(([value, text, lang]) =>
      element("option", { selected: value === chosen, lang }, String(text))));
  return element("label.menu", element("span", label), list);
}

export function toggle(name, label, checked, onchange, { disabled = false, title = null } = {}) {
  const box = element("input", {
    type: "checkbox", "data-control": name, checked, disabled,
    onchange: () => onchange(box.checked),
  });
  return element(disabled ? "label.toggle.off" : "label.toggle", { title }, box, label);
}

export function button(label, onclick, { name = null, kind = "plain", ...more } = {}) {
  return element("button", { type: "button", class: kind, "data-control": name, onclick, ...more },
    label);
}

/** Marks of one choice among several, side by side; arrow keys move, as in any radio group. */
export function choices(name, label, options, chosen, onchoose) {
  const buttons = options.map(([value, text, lang]) => button(text, () => onchoose(value), {
    kind: null, role: "radio", lang, "aria-checked": String(value === chosen),
    tabindex: value === chosen ? 0 : -1,
  }));
  const move = (event) => onArrow(event, (down, right) => {
    const place = buttons.indexOf(event.target) + down + right + buttons.length;
    onchoose(options[place % buttons.length][0]);
  });
  return element("div.choices",
    { role: "radiogroup", "data-control": name, "aria-label": label, onkeydown: move }, buttons);
}

/** Redraws and gives the focus back to the control that had it. */
export function keepingFocus(root, redraw) {
  const held = root.contains(document.activeElement) && document.activeElement;
  const name = held && held.closest("[data-control]")?.dataset.control;
  redraw();
  const again = name && root.querySelector(`[data-control="${CSS.escape(name)}"]`);
  if (!again || again.contains(document.activeElement)) return;
  (again.querySelector('[tabindex="0"]') ?? again).focus({ preventScroll: true });
}
