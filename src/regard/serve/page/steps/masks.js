/** Step 6: masks as things one can see, and take away. */
import { slider, toggle } from "../controls.js";
import { cut, figure, heat, svg, words } from "../draw.js";
import { card, controls, scroller } from "../parts.js";
import { weigh } from "../maths.js";
import { element } from "../view/elements.js";

let table = [[]];
export const rows = () => table;

export async function draw(app, lesson) {
  const look = await lesson.look();
  const kind = look.panel.kinds.decoder ? "decoder" : "cross";
  const head = await lesson.head(look, kind);
  const { mask, pads } = app.state;
  const n = head.key.length;
  const blank = head.key[0].map(() => 0);
  const keys = [...head.key, ...Array.from({ length: pads }, () => blank)];
  const isFuture = (row, at) => head.causal && at > row && at < n;
  const isPad = (at) => at >= n;
  const weights = head.query.map((query, row) => weigh(query, keys, {
    scale: head.scale, canSee: (at) => !mask || !(isFuture(row, at) || isPad(at)),
  }).weights);
  const labels = [...head.keys, ...Array.from({ length: pads }, () => "<pad>")];
  table = [["", ...labels], ...weights.map((row, at) => [head.queries[at], ...row])];
  const leaked = (test) => weights.reduce((sum, row, at) =>
    sum + row.reduce((part, value, to) => part + (test(at, to) ? value : 0), 0), 0) / weights.length;
  const [future, padding] = [leaked(isFuture), leaked((_, at) => isPad(at))];
  return [
    controls(...lesson.headControls(look, { kinds: [kind], kind }),
      toggle("mask", app.said("masks_on"), mask, (on) => lesson.set({ mask: on })),
      slider("pads", app.said("masks_pads"), { min: 0, max: 6, value: pads },
        (value) => lesson.set({ pads: value }))),
    card(app.said("masks_matrix"), scroller(app.said("masks_matrix"),
      matrix(app, head.queries, labels, weights, mask ? (row, at) => isFuture(row, at) || isPad(at) : () => false,
        (row, at) => isFuture(row, at) || isPad(at))),
    element("p", { class: mask ? "verdict right" : "verdict wrong", role: "status" },
      mask ? app.said("masks_held") : app.said("masks_broken", {
        future: (100 * future).toFixed(1), padding: (100 * padding).toFixed(1) })),
    element("p", { class: "note" }, app.said("masks_help"))),
  ];
}

function matrix(app, queries, keys, weights, isHatched, isHidden) {
  const [left, top] = [104, 92];
  const cell = Math.max(26, Math.min(46, 560 / keys.length));
  const [width, height] = [cell * keys.length, cell * queries.length];
  const marks = weights.flatMap((row, at) => row.flatMap((value, to) => {
    const [x, y] = [left + to * cell, top + at * cell];
    const parts = [];
    if (isHatched(at, to)) parts.push(svg("rect", { x, y, width: cell, height: cell, class: "hatched" }),
      svg("path", { d: hatch(x, y, cell), class: "hatch" }));
    else if (isHidden(at, to) && value > 0.005) {
      parts.push(svg("rect", { x: x + 1.5, y: y + 1.5, width: cell - 3, height: cell - 3, class: "leak" }));
    }
    return parts;
  }));
  return figure(left + width + 4, top + height + 4, app.said("masks_matrix"),
    heat(weights, { x: left, y: top, width, height, theme: app.seen }), ...marks,
    ...queries.map((label, at) => words(left - 8, top + at * cell + cell / 2 + 5, cut(label, left - 12),
      { "text-anchor": "end" })),
    ...keys.map((label, at) => {
      const [x, y] = [left + at * cell + cell / 2 + 5, top - 8];
      return words(x, y, cut(label, top - 14), { transform: `rotate(-90 ${x} ${y})` });
    }));
}

function hatch(x, y, size) {
  const lines = [];
  for (let at = 6; at < 2 * size; at += 6) {
    const [from, to] = [Math.max(0, at - size), Math.min(at, size)];
    lines.push(`M${x + from} ${y + at - from}L${x + to} ${y + at - to}`);
  }
  return lines.join("");
}
