/** Step 3: every token asks, is asked, and answers: query, key and value. */
import { cut, figure, heat, largest, svg, words } from "../draw.js";
import { card, controls, scroller } from "../parts.js";
import { weigh } from "../maths.js";
import { element } from "../view/elements.js";

let table = [[]];
export const rows = () => table;

export async function draw(app, lesson) {
  const look = await lesson.look();
  const head = await lesson.head(look);
  const sees = (at) => !head.causal || at <= head.row;
  const { scores, weights } = weigh(head.query[head.row], head.key, { scale: head.scale, canSee: sees });
  table = [["token", "score", "weight"],
    ...head.keys.map((label, at) => [label, scores[at], weights[at]])];
  const name = head.queries[head.row];
  return [
    controls(...lesson.headControls(look), lesson.rowMenu(head)),
    card(app.said("qkv_query", { name }), strip(app, [name], [head.query[head.row]]),
      element("p", { class: "note" }, app.said("qkv_query_help", { d: head.query[0].length }))),
    card(app.said("qkv_keys"), strip(app, head.keys, head.key, scores, weights),
      element("p", { class: "note" }, app.said("qkv_keys_help"))),
    card(app.said("qkv_values"), strip(app, head.keys, head.value, null, weights),
      element("p", { class: "note" }, app.said("qkv_values_help"))),
    card(app.said("qkv_output", { name }),
      strip(app, [app.said("output")], [mixed(head.value, weights)]),
      element("p", { class: "note" }, app.said("qkv_output_help"))),
  ];
}

const mixed = (values, weights) =>
  values[0].map((_, at) => values.reduce((sum, value, row) => sum + weights[row] * value[at], 0));

function strip(app, labels, vectors, scores = null, weights = null) {
  const [left, tall, wide] = [96, 24, 520];
  const limit = largest(vectors);
  const faded = weights && !scores; // values: what weighs little is faint
  const cells = vectors.map((vector, at) => heat([vector], {
    x: left, y: 2 + at * tall, width: wide, height: tall - 4, theme: app.seen, limit }));
  if (faded) cells.forEach((one, at) => one.setAttribute("opacity", Math.max(0.15, weights[at])));
  const after = left + wide + 12;
  return scroller(labels.join(" "), figure(after + (weights ? 150 : 0), labels.length * tall + 4,
    labels.join(" "), ...cells,
    ...labels.map((label, at) =>
      words(left - 8, at * tall + 17, cut(label, left - 14), { "text-anchor": "end" })),
    ...(weights ?? []).map((weight, at) => svg("g", {},
      words(after, at * tall + 17, scores ? numberOf(scores[at]) : `× ${weight.toFixed(3)}`, { class: "number" }),
      ...(scores ? [words(after + 76, at * tall + 17, `→ ${weight.toFixed(3)}`, { class: "number" })] : [])))));
}

const numberOf = (value) => (value === -Infinity ? "−∞" : value.toFixed(2).replace("-", "−"));
