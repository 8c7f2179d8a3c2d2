/** Step 7: every head of every layer, named by what it looks at. */
import { card, controls } from "../parts.js";
import { menu } from "../controls.js";
import { entropy } from "../maths.js";
import { colourAt } from "../view/colours.js";
import { element } from "../view/elements.js";
import { unitsOf, strongest } from "../view/units.js";
import { headOf } from "../view/weights.js";

let table = [[]];
export const rows = () => table;

const LEAST = 0.45; // a share of the weight that deserves a name

/** How much of a head's weight is where a name says; the largest share names the head. */
export function nameOf(weights, kind, columns, isSink) {
  const n = weights.length;
  const share = (test) => weights.reduce((sum, row, at) =>
    sum + row.reduce((part, value, to) => part + (test(at, to) ? value : 0), 0), 0) / n;
  const isSquare = kind !== "cross";
  // A decoder is given what was written one step before, so the same column is the word before.
  const shift = kind === "decoder" ? 1 : 0;
  const slant = (columns - 1) / Math.max(1, n - 1);
  const shares = {
    sinks: share((_, to) => isSink[to]),
    first: share((_, to) => to === 0 && !isSink[to]),
    ...(isSquare && {
      itself: kind === "encoder" ? share((at, to) => to === at && !isSink[to]) : 0,
      before: share((at, to) => to === at - 1 + shift && !isSink[to]),
      after: kind === "encoder" ? share((at, to) => to === at + 1 && !isSink[to]) : 0,
    }),
    ...(!isSquare && { diagonal: share((at, to) => Math.abs(to - at * slant) <= 1 && !isSink[to]) }),
  };
  const [[best, most]] = Object.entries(shares).sort(([, one], [, other]) => other - one);
  if (most >= LEAST) return [best, most];
  const bits = weights.reduce((sum, row) => sum + entropy(row), 0) / n;
  return bits > 0.8 * Math.log2(Math.max(2, columns)) ? ["spread", null] : ["mixed", null];
}

export async function draw(app, lesson) {
  const look = await lesson.look();
  const { kind } = lesson;
  const one = look.panel.kinds[kind];
  const { layer, head } = lesson.place(look, kind);
  const units = unitsOf(look.panel.sides[one.keys].pieces);
  const isSink = units.map((unit) => unit.isSink);
  const kinds = Object.keys(look.panel.kinds).map((name) => [name, app.said(name)]);
  table = [["layer", "head", "name", "share", "entropy"]];
  const grid = element("div", { class: "gallery", role: "radiogroup", "aria-label": app.said("heads") });
  grid.addEventListener("keydown", (event) => {
    const [down, right] = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key] ?? [];
    if (down === undefined) return;
    event.preventDefault();
    const within = (value, most) => Math.min(Math.max(value, 0), most - 1);
    lesson.set({ layer: within(layer + down, one.layers), head: within(head + right, one.heads) });
  });
  for (let at = 0; at < one.layers; at++) {
    for (let which = 0; which < one.heads; which++) {
      grid.append(thumbnail(app, lesson, one, { kind, at, which, isSink, isOn: at === layer && which === head }));
    }
  }
  grid.style.setProperty("--heads", one.heads);
  return [
    controls(menu("kind", app.said("kind"), kinds, kind, (value) => lesson.set({ kind: value, row: 0, column: null }))),
    card(app.said(kind), element("p", { class: "note" }, app.said("gallery_help")), grid),
    reading(app, look, one, kind, layer, head),
  ];
}

function matrixOf(kind, layer, head) {
  const flat = headOf(kind, layer, head);
  return Array.from({ length: kind.rows }, (_, row) =>
    Array.from(flat.subarray(row * kind.columns, (row + 1) * kind.columns)));
}

function thumbnail(app, lesson, one, { kind, at, which, isSink, isOn }) {
  const weights = matrixOf(one, at, which);
  const [name, share] = nameOf(weights, kind, one.columns, isSink);
  const bits = weights.reduce((sum, row) => sum + entropy(row), 0) / weights.length;
  table.push([at + 1, which + 1, name, share ?? "", bits]);
  const canvas = element("canvas", { width: one.columns, height: one.rows, "aria-hidden": "true" });
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(one.columns, one.rows);
  weights.flat().forEach((weight, cell) => image.data.set([...colourAt(weight, app.seen), 255], 4 * cell));
  pen.putImageData(image, 0, 0);
  const said = app.said(`head_${name}`);
  const percent = share == null ? "" : ` ${Math.round(100 * share)} %`;
  return element("button", {
    type: "button", role: "radio", class: "frame-button", "aria-checked": String(isOn),
    tabindex: isOn ? "0" : "-1", "data-control": isOn ? "thumbnail" : null,
    "aria-label": `${app.said("layer_head", { layer: at + 1, head: which + 1 })}: ${said}${percent}`,
    onclick: () => lesson.set({ layer: at, head: which }),
  }, canvas, element("span", { class: "badge" }, `${at + 1}.${which + 1} ${said}`),
  element("span", { class: "note" }, percent.trim() || app.said("bits", { bits: bits.toFixed(1) })));
}

function reading(app, look, one, kind, layer, head) {
  const weights = matrixOf(one, layer, head);
  const queries = look.panel.sides[one.queries].pieces.labels;
  const keys = look.panel.sides[one.keys].pieces.labels;
  const lines = weights.map((row, at) => element("li", {}, element("b", {}, queries[at]), " → ",
    strongest(row).map((to) => `${keys[to]} ${row[to].toFixed(2)}`).join(app.said("and"))));
  return card(app.said("reading", { head: app.said("layer_head", { layer: layer + 1, head: head + 1 }) }),
    element("ul", { class: "reading" }, ...lines));
}
