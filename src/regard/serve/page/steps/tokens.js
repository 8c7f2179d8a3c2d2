/** Step 1: a sentence is cut into tokens, and each token becomes a row of numbers. */
import { rowsOf } from "../api.js";
import { cut, figure, heat, largest, svg, words } from "../draw.js";
import { card, scroller } from "../parts.js";
import { dot } from "../maths.js";
import { labelsOf } from "../pieces.js";
import { element } from "../view/elements.js";

const SHOWN = 64;
let table = [[]];
export const rows = () => table;

export async function draw(app, lesson) {
  const look = await lesson.look();
  const found = await app.once("/api/v1/embed", lesson.asked).catch(() => null);
  const { d_model: d } = app.model.model;
  const parts = [chips(app, look, found)];
  if (found) {
    const vectors = rowsOf(found.vectors);
    const labels = labelsOf(look.src_pieces);
    table = [["token", ...vectors[0].map((_, at) => at)],
      ...vectors.map((vector, at) => [labels[at], ...vector.map((value) => value.toFixed(5))])];
    parts.push(strips(app, labels, vectors, d), similar(app, labels, vectors));
  }
  return parts;
}

function chips(app, look, found) {
  const line = (pieces, ids, lang) =>
    element("div", { class: "line", lang }, ...labelsOf(pieces).map((label, at) =>
      element("span", { class: "chip still" }, label,
        element("span", { class: "number" }, ids ? String(ids[at]) : String(at + 1)))));
  return card(app.said("tokens_cut"), element("p", { class: "cap" }, app.said("source")),
    line(look.src_pieces, found?.ids, look.from), element("p", { class: "cap" }, app.said("translation")),
    line(look.tgt_pieces, null, look.to),
    element("p", { class: "note" },
      app.said("tokens_ids", { n: app.model.vocabulary[0].toLocaleString() })));
}

function strips(app, labels, vectors, d) {
  const [left, tall, width] = [96, 24, 760];
  const limit = largest(vectors) * 0.8;
  const shown = vectors.map((vector) => vector.slice(0, SHOWN));
  const drawn = figure(left + width, labels.length * tall + 8, app.said("tokens_rows", { d }),
    heat(shown, { x: left, y: 2, width, height: labels.length * tall, theme: app.seen, limit }),
    ...labels.map((label, at) =>
      words(left - 8, at * tall + tall / 2 + 7, cut(label, left - 14), { "text-anchor": "end" })),
    ...labels.slice(1).map((_, at) => svg("line", { x1: left, x2: left + width,
      y1: 2 + (at + 1) * tall, y2: 2 + (at + 1) * tall, class: "gap" })));
  return card(app.said("tokens_rows", { d }), scroller(app.said("tokens_rows", { d }), drawn),
    element("p", { class: "note" },
      app.said("tokens_first", { n: Math.min(SHOWN, d), root: Math.sqrt(d).toFixed(0) })));
}

function similar(app, labels, vectors) {
  const size = (vector) => Math.sqrt(dot(vector, vector)) || 1;
  const cosine = vectors.map((one) => vectors.map((two) => dot(one, two) / size(one) / size(two)));
  const [left, cell, top] = [96, labels.length > 12 ? 30 : 62, 30];
  const tall = Math.min(cell, 34);
  const [whole, height] = [cell * labels.length, tall * labels.length];
  const numbers = cell < 60 ? [] : cosine.flatMap((row, at) => row.map((value, to) =>
    words(left + to * cell + cell / 2, top + at * tall + tall / 2 + 4, value.toFixed(2),
      { "text-anchor": "middle", class: Math.abs(value) > 0.55 ? "small on-dark" : "small" })));
  const drawn = figure(left + whole + 2, top + height + 2, app.said("tokens_similar"),
    heat(cosine, { x: left, y: top, width: whole, height, theme: app.seen, limit: 1 }),
    ...labels.map((label, at) => words(left - 8, top + at * tall + tall / 2 + 5,
      cut(label, left - 14), { "text-anchor": "end" })),
    ...labels.map((label, at) => words(left + at * cell + cell / 2, top - 8, cut(label, cell - 4, 12),
      { "text-anchor": "middle", "font-size": 12 })), ...numbers);
  return card(app.said("tokens_similar"), scroller(app.said("tokens_similar"), drawn),
    element("p", { class: "note" }, app.said("tokens_similar_help")));
}
