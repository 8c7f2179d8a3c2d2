/** Step 4: the arithmetic of one cell, from the model's own numbers to the model's own weight. */
import { bars, figure, largest, LEFT, pathOf, strips, stripWidth, TALL, words } from "../draw.js";
import {
  card, controls, element, note, numberOf, plate, said, scroller, svg, tableOf,
} from "../parts.js";
import { dot, weigh } from "../maths.js";

const EXACT = 1e-6;

export async function draw(app, lesson) {
  const look = await lesson.look();
  const head = await lesson.head(look);
  const { row, column } = head;
  const { scale, mask, temperature } = app.state;
  const isDot = head.score === "scaled_dot" || head.score === "dot";
  const canSee = (at) => !head.causal || !mask || at <= row;
  const factor = scale ? head.scale : 1;
  const [query, key] = [head.query[row], head.key[column]];
  const one = weigh(query, head.key, { scale: factor, canSee, temperature });
  const isOwn = scale && (mask || !head.causal) && temperature === 1;
  const lines = products(query, key);
  lesson.table = [["dimension", "q", "k", "q·k", "sum"], ...lines.map((line, at) => [at, ...line])];
  const root = +(1 / head.scale).toFixed(2);
  const names = { query: head.queries[row], key: head.keys[column] };
  return [
    controls(...lesson.headControls(look), lesson.rowMenu(head),
      lesson.tokenMenu("column", "key_of", head.keys, column)),
    controls(
      lesson.toggle("scale", said("switch_scale", { root })),
      lesson.toggle("mask", said("switch_mask"),
        { disabled: !head.causal, title: head.causal ? null : said("no_mask") }),
      lesson.slider("temperature", "temperature", { min: 0.1, max: 10, step: 0.1,
        shown: temperature.toFixed(1) })),
    !isDot && card(null, element("p", said("not_dot", { score: head.score }))),
    element("div.pair.wide-left",
      card(said("cell_of", names), chain(app, head, one, factor, isOwn && isDot)),
      card(said("row_of", names),
        scroller(bars(head.keys.map((label, at) => [label, one.weights[at]]),
          { label: said("weight"), chosen: column })),
        note(said("row_sum", { n: head.keys.length })))),
    dimensions(lines),
    contribution(head.value[column], one.weights[column]),
  ];
}

/** q, k, their product and the running sum, dimension by dimension. */
function products(query, key) {
  let sum = 0;
  return query.map((value, at) => {
    sum += value * key[at];
    return [value, key[at], value * key[at], sum];
  });
}

function chain(app, head, { raw, scores, weights }, factor, isOwn) {
  const { row, column } = head;
  const { temperature } = app.state;
  const most = Math.max(...scores);
  const power = Math.exp(scores[column] - most);
  const sum = scores.reduce((total, score) => total + Math.exp(score - most), 0);
  const scaled = raw[column] * factor;
  const isHidden = scores[column] === -Infinity;
  const mask = !head.causal ? said("all_seen") : isHidden ? "+ (−∞)" : "+ 0";
  const lines = [
    ["sum_products", "q · k", raw[column]],
    ["scaled", factor === 1 ? "× 1" : `÷ √${head.query[0].length} = ÷ ${numberOf(1 / factor)}`,
      scaled],
    ["masked_step", mask, isHidden ? -Infinity : scaled],
    ...(temperature === 1 ? [] : [["tempered", `÷ ${temperature}`, scores[column]]]),
    ["power", `exp(s − ${numberOf(most)})`, power],
    ["share_of", `÷ Σ = ÷ ${numberOf(sum, 4)}`, weights[column], 6],
  ].map(([name, formula, value, digits = 4]) => element("tr",
    element("th", { scope: "row" }, said(name)), element("td", formula),
    element("td.value", { "data-value": value }, numberOf(value, digits))));
  const given = head.weights[row][column];
  const off = Math.abs(weights[column] - given);
  const isEqual = off <= EXACT; // whatever the switches
  const verdict = said(isEqual ? "equal" : isOwn ? "unequal" : "changed",
    { given: given.toFixed(6), off: off.toExponential(1) });
  return element("div", element("table.chain", element("tbody", lines)),
    note(said("power_help", { most: numberOf(most) })),
    element(isEqual ? "p.verdict.right" : "p.verdict",
      { "data-given": given, "data-off": off }, isEqual && "✓ ", verdict));
}

function dimensions(lines) {
  const [query, key, product, sums] = [0, 1, 2, 3].map((at) => lines.map((line) => line[at]));
  const limit = largest([query, key]);
  const [low, high] = [Math.min(0, ...sums), Math.max(0, ...sums)];
  const [top, tall, width] = [3 * TALL + 16, 84, stripWidth(66)];
  const up = (value) => top + tall - ((value - low) / (high - low || 1)) * tall;
  const step = width / sums.length;
  const path = pathOf(sums.map((value, at) => [LEFT + (at + 0.5) * step, up(value)]));
  const drawn = figure(LEFT + width + 66, top + tall + 26, said("dimensions"),
    strips(["q", "k", "q × k"], [query, key, product], width,
      { limits: [limit, limit, largest([product])] }),
    svg("line.grid", { x1: LEFT, x2: LEFT + width, y1: up(0), y2: up(0) }),
    svg("path.curve", { d: path }),
    words(LEFT - 10, up(0) + 4, "0", "tick end"),
    words(LEFT + width + 6, up(sums.at(-1)) + 5, numberOf(sums.at(-1)), "number"),
    words(LEFT, top + tall + 20, said("running"), "tick"));
  const table = tableOf([[said("dimension"), "q", "k", "q × k", said("sum")],
    ...lines.map((line, at) => [at + 1, ...line.map((value) => numberOf(value, 4))])]);
  return plate(drawn, element("details",
    element("summary", said("all_dimensions", { d: lines.length })),
    scroller(table, said("dimension"))));
}

function contribution(value, weight) {
  const part = value.map((number) => weight * number);
  const [whole, size] = [value, part].map((one) => Math.sqrt(dot(one, one)).toFixed(3));
  const width = stripWidth();
  return plate(figure(LEFT + width, 2 * TALL + 4, said("contribution"),
    strips(["v", `${weight.toFixed(3)} × v`], [value, part], width)),
  note(said("contribution_help", { size, whole })));
}
