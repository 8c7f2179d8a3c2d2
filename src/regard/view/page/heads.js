/** Every head of every layer as a thumbnail to choose from, each layer's mean first. */
import { colourAt } from "./colours.js";
import { element, said } from "./elements.js";
import { headOf } from "./weights.js";

export function headsView({ onchoose }) {
  const root = element("div", { class: "heads", role: "radiogroup" });
  let drawn = null;

  function move(event) {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const layer = Number(event.target.dataset.layer) + step[0];
    const head = Number(event.target.dataset.head) + step[1];
    const next = root.querySelector(`[data-layer="${layer}"][data-head="${head}"]`);
    if (!next) return;
    onchoose(layer, head);
    root.querySelector('[aria-checked="true"]').focus();
  }
  root.addEventListener("keydown", move);

  function picture(kind, layer, head, theme) {
    const canvas = element("canvas", {
      width: kind.columns,
      height: kind.rows,
      "aria-hidden": "true",
    });
    const pen = canvas.getContext("2d");
    const image = pen.createImageData(kind.columns, kind.rows);
    headOf(kind, layer, head).forEach((weight, at) => {
      image.data.set([...colourAt(weight, theme), 255], 4 * at);
    });
    pen.putImageData(image, 0, 0);
    return canvas;
  }

  function label(name) {
    return element("span", { class: "name", "aria-hidden": "true" }, String(name));
  }

  function build(kind, words, theme) {
    root.style.setProperty("--columns", kind.heads + 1);
    root.setAttribute("aria-label", said(words, "heads"));
    const names = [said(words, "mean"), ...Array.from({ length: kind.heads }, (_, n) => n + 1)];
    root.replaceChildren(
      element("span", { "aria-hidden": "true" }),
      ...names.map(label),
    );
    for (let layer = 0; layer < kind.layers; layer++) {
      root.append(label(layer + 1));
      for (let head = -1; head < kind.heads; head++) {
        const values = { layer: layer + 1, head: head + 1 };
        const button = element("button", {
          type: "button",
          role: "radio",
          class: "thumbnail",
          "aria-label": said(words, head < 0 ? "layer_mean" : "layer_head", values),
          "data-layer": layer,
          "data-head": head,
          onclick: () => onchoose(layer, head),
        });
        button.append(picture(kind, layer, head, theme));
        root.append(button);
      }
    }
  }

  return {
    root,
    update(kind, { words, theme, layer, head }) {
      const wanted = [kind, words, theme];
      if (wanted.some((one, n) => one !== drawn?.[n])) build(kind, words, theme);
      drawn = wanted;
      for (const button of root.querySelectorAll("button")) {
        const { dataset } = button;
        const isChosen = Number(dataset.layer) === layer && Number(dataset.head) === head;
        button.setAttribute("aria-checked", String(isChosen));
        button.tabIndex = isChosen ? 0 : -1;
      }
    },
  };
}
