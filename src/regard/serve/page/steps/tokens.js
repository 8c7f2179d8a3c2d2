/** Step 1: a sentence is cut into tokens, and each token becomes a row of numbers. */
import { rowsOf } from "../api.js";
import { figure, grid, largest, LEFT, strips, stripWidth, TALL, words } from "../draw.js";
import { card, element, note, numberOf, plate, said } from "../parts.js";
import { SCORES } from "../maths.js";
import { labelsOf } from "../pieces.js";
import { chip } from "../view/sentence.js";

const SHOWN = 64;
const PRINTED = 16; // tokens: with more there is no room for numbers

export async function draw(app, lesson) {
  const look = await lesson.look();
  const found = await app.once("/api/v1/embed", lesson.asked).catch(() => null);
  if (!found) return [chips(app, look, null)];
  const vectors = rowsOf(found.vectors);
  const labels = labelsOf(look.src_pieces);
  lesson.table = [["token", ...vectors[0].map((_, at) => at)],
    ...vectors.map((vector, at) => [labels[at], ...vector.map((value) => value.toFixed(5))])];
  return [chips(app, look, found), rowsCard(labels, vectors), similar(labels, vectors)];
}

function chips(app, look, found) {
  const line = (name, pieces, ids, lang) => [element("p.cap", said(name)),
    element("div.line.still", { lang }, labelsOf(pieces).map((label, at) =>
      chip(label, String(ids?.[at] ?? at + 1))))];
  return card(said("tokens_cut"),
    ...line("source", look.src_pieces, found?.ids, look.from),
    ...line("translation", look.tgt_pieces, null, look.to),
    note(said("tokens_ids", { n: app.model.vocabulary[0].toLocaleString() })));
}

function rowsCard(labels, vectors) {
  const d = vectors[0].length;
  const shown = vectors.map((vector) => vector.slice(0, SHOWN));
  const width = stripWidth();
  return plate(figure(LEFT + width, labels.length * TALL + 8, said("tokens_rows", { d }),
    strips(labels, shown, width, { limit: largest(shown) / 2 })),
  note(said("tokens_first", { n: shown[0].length, root: +Math.sqrt(d).toFixed(1) })));
}

function similar(labels, vectors) {
  const cosine = vectors.map((one) => vectors.map((two) => SCORES.cosine(one, two)));
  const cell = labels.length > PRINTED ? 30 : 44;
  const print = (row, at, x, y) => {
    const value = cosine[row][at];
    return cell < 40 ? [] : [words(x + cell / 2, y + cell / 2 + 4, numberOf(value),
      value > 0.55 ? "small middle on-dark" : "small middle")];
  };
  return plate(grid(said("tokens_similar"), labels, labels, cosine,
    { cell, limit: 1, inside: print }), note(said("tokens_similar_help")));
}
