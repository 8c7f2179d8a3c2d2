/** Step 4: the arithmetic of one cell, from the model's own numbers to the model's own weight. */
import { slider, toggle } from "../controls.js";
import { bars, figure, heat, largest, svg, words } from "../draw.js";
import { card, controls, scroller } from "../parts.js";
import { dot, weigh } from "../maths.js";
import { element } from "../view/elements.js";

let table = [[]];
export const rows = () => table;
export const EXACT = 1e-6;

const shown = (value, digits = 4) =>
  value === -Infinity ? "−∞" : value.toFixed(digits).replace("-", "−");

export async function draw(app, lesson) {
  const look = await lesson.look();
  const head = await lesson.head(look);
  const { row, column } = head;
  const { scale, mask, temperature } = app.state;
  const isDot = head.score === "scaled_dot" || head.score === "dot";
  const sees = (at) => !head.causal || !mask || at <= row;
  const factor = scale ? head.scale : 1;
  const one = weigh(head.query[row], head.key, { scale: factor, canSee: sees, temperature });
  const isOwn = scale && (mask || !head.causal) && temperature === 1;
  const [query, key] = [head.query[row], head.key[column]];
  table = [["dimension", "q", "k", "q·k", "sum"], ...products(query, key).map((line, at) => [at, ...line])];
  return [
    controls(...lesson.headControls(look), lesson.rowMenu(head), lesson.columnMenu(head)),
    controls(
      toggle("scale", app.said("switch_scale", { root: shown(1 / head.scale, 2).replace(/\.?0+$/, "") }),
        scale, (on) => lesson.set({ scale: on })),
      toggle("mask", app.said("switch_mask"), mask, (on) => lesson.set({ mask: on }),
        { disabled: !head.causal, title: head.causal ? null : app.said("no_mask") }),
      slider("temperature", app.said("temperature"),
        { min: -1, max: 1, step: 0.05, value: Math.log10(temperature), shown: temperature.toFixed(2) },
        (power) => lesson.set({ temperature: Number((10 ** power).toFixed(2)) }))),
    !isDot && card(null, element("p", {}, app.said("not_dot", { score: head.score }))),
    element("div", { class: "pair wide-left" },
      card(app.said("cell_of", { query: head.queries[row], key: head.keys[column] }),
        chain(app, head, one, factor, isOwn && isDot)),
      card(app.said("row_of", { query: head.queries[row] }),
        scroller(app.said("weight"), bars(head.keys.map((label, at) => [label, one.weights[at]]),
          { label: app.said("weight"), theme: app.seen, chosen: column })),
        element("p", { class: "note" }, app.said("row_sum", { n: head.keys.length })))),
    dimensions(app, query, key),
    contribution(app, head, one.weights[column]),
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
  const largestScore = Math.max(...scores);
  const power = Math.exp(scores[column] - largestScore);
  const sum = scores.reduce((total, score) => total + Math.exp(score - largestScore), 0);
  const line = (name, formula, value, data) =>
    element("tr", {}, element("th", { scope: "row" }, app.said(name)), element("td", {}, formula),
      element("td", { class: "value", "data-value": data }, value));
  const isHidden = scores[column] === -Infinity;
  const scaled = raw[column] * factor;
  const lines = [
    line("sum_products", "q · k", shown(raw[column]), raw[column]),
    line("scaled", factor === 1 ? "× 1" : `÷ √${head.query[0].length} = ÷ ${shown(1 / factor, 2)}`,
      shown(scaled), scaled),
    line("masked_step", head.causal ? (isHidden ? "+ (−∞)" : "+ 0") : app.said("all_seen"),
      isHidden ? "−∞" : shown(scaled), isHidden ? "-Infinity" : scaled),
  ];
  if (temperature !== 1) {
    lines.push(line("tempered", `÷ ${temperature}`, shown(scores[column]), scores[column]));
  }
  lines.push(
    line("power", `exp(s − ${shown(largestScore, 2)})`, shown(power), power),
    line("share_of", `÷ Σ = ÷ ${shown(sum)}`, weights[column].toFixed(7), weights[column]),
  );
  const given = head.weights[row][column];
  const off = Math.abs(weights[column] - given);
  const isEqual = off <= EXACT;
  const verdict = isOwn
    ? app.said(isEqual ? "equal" : "unequal", { given: given.toFixed(7), off: off.toExponential(1) })
    : app.said("changed", { given: given.toFixed(7) });
  return element("div", {},
    element("table", { class: "chain" }, element("tbody", {}, ...lines)),
    element("p", { class: isOwn && isEqual ? "verdict right" : "verdict", role: "status",
      "data-given": given, "data-off": off }, `${isOwn && isEqual ? "✓ " : ""}${verdict}`));
}

function dimensions(app, query, key) {
  const lines = products(query, key);
  const [left, tall, width] = [84, 26, 760];
  const step = width / query.length;
  const pick = (at) => lines.map((line) => line[at]);
  const names = ["q", "k", "q × k"];
  const sums = pick(3);
  const [low, high] = [Math.min(0, ...sums), Math.max(0, ...sums)];
  const [top, tallest] = [3 * tall + 16, 84];
  const up = (value) => top + tallest - ((value - low) / (high - low || 1)) * tallest;
  const path = sums.map((value, at) => `${at ? "L" : "M"}${(left + (at + 0.5) * step).toFixed(1)} ${up(value).toFixed(1)}`);
  const drawn = figure(left + width + 66, top + tallest + 26, app.said("dimensions"),
    ...names.map((name, at) => heat([pick(at)], { x: left, y: 2 + at * tall, width, height: tall - 5,
      theme: app.seen, limit: at < 2 ? Math.max(largest([query]), largest([key])) : largest([pick(2)]) })),
    ...names.map((name, at) => words(left - 10, at * tall + 18, name, { "text-anchor": "end" })),
    svg("line", { x1: left, x2: left + width, y1: up(0), y2: up(0), class: "grid" }),
    svg("path", { d: path.join(""), class: "curve curve-0" }),
    words(left - 10, up(0) + 4, "0", { "text-anchor": "end", class: "tick" }),
    words(left + width + 6, up(sums.at(-1)) + 5, shown(sums.at(-1), 2), { class: "number" }),
    words(left, top + tallest + 20, app.said("running"), { class: "tick" }));
  const cells = lines.map((line, at) => element("tr", {}, element("th", { scope: "row" }, String(at + 1)),
    ...line.map((value) => element("td", {}, shown(value)))));
  const heads = [app.said("dimension"), "q", "k", "q × k", app.said("sum")];
  return card(app.said("dimensions"), scroller(app.said("dimensions"), drawn),
    element("details", {}, element("summary", {}, app.said("all_dimensions", { d: query.length })),
      scroller(app.said("dimension"), element("table", {},
        element("thead", {}, element("tr", {}, ...heads.map((name) => element("th", { scope: "col" }, name)))),
        element("tbody", {}, ...cells)))));
}

function contribution(app, head, weight) {
  const value = head.value[head.column];
  const part = value.map((number) => weight * number);
  const limit = largest([value]);
  const [left, tall, width] = [84, 26, 760];
  const drawn = figure(left + width, 2 * tall + 4, app.said("contribution"),
    ...[value, part].map((line, at) => heat([line], { x: left, y: 2 + at * tall, width,
      height: tall - 5, theme: app.seen, limit })),
    words(left - 10, 18, "v", { "text-anchor": "end" }),
    words(left - 10, tall + 18, `${weight.toFixed(3)} × v`, { "text-anchor": "end" }));
  return card(app.said("contribution"), scroller(app.said("contribution"), drawn),
    element("p", { class: "note" }, app.said("contribution_help", {
      size: Math.sqrt(dot(part, part)).toFixed(3), whole: Math.sqrt(dot(value, value)).toFixed(3) })));
}
