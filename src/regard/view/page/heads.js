/** Every head of every layer as a thumbnail to choose from, each layer's mean first. */
import { painted } from "./colours.js";
import { element, onArrow, range, said } from "./elements.js";
import { headOf } from "./weights.js";

export function headsView({ onchoose }) {
  const root = element("div.heads", { role: "radiogroup", onkeydown: (event) =>
    onArrow(event, (down, right) => {
      const { dataset } = event.target;
      const [layer, head] = [Number(dataset.layer) + down, Number(dataset.head) + right];
      if (!root.querySelector(`[data-layer="${layer}"][data-head="${head}"]`)) return;
      onchoose(layer, head);
      root.querySelector('[aria-checked="true"]').focus();
    }) });
  let drawn = null;

  const label = (name) => element("span.name", { "aria-hidden": "true" }, String(name));

  const thumbnail = (kind, layer, head) =>
    element("button.thumbnail", {
      type: "button", role: "radio", "data-layer": layer, "data-head": head,
      "aria-label": said(head < 0 ? "layer_mean" : "layer_head",
        { layer: layer + 1, head: head + 1 }),
      onclick: () => onchoose(layer, head),
    }, painted(headOf(kind, layer, head)));

  function build(kind) {
    const heads = range(kind.heads + 1);
    root.style.setProperty("--columns", heads.length);
    root.setAttribute("aria-label", said("heads"));
    root.replaceChildren(
      label(""), ...heads.map((n) => label(n || said("mean"))),
      ...range(kind.layers).flatMap((layer) => [
        label(layer + 1), ...heads.map((n) => thumbnail(kind, layer, n - 1)),
      ]));
  }

  return {
    root,
    update(kind, { layer, head }) {
      if (drawn !== kind) build(kind);
      drawn = kind;
      for (const button of root.querySelectorAll("button")) {
        const { dataset } = button;
        const isChosen = Number(dataset.layer) === layer && Number(dataset.head) === head;
        button.setAttribute("aria-checked", String(isChosen));
        button.tabIndex = isChosen ? 0 : -1;
      }
    },
  };
}
