/** Step 5: one query and its keys under five scores, and what width does to softmax. */
import { button, slider } from "../controls.js";
import { bars, curves } from "../draw.js";
import { card, controls, scroller } from "../parts.js";
import { dot, entropy, normals, SCORES, slope, softmax } from "../maths.js";
import { element } from "../view/elements.js";

const KEYS = 8;
const DRAWS = 40;
const WIDTHS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
let table = [[]];
export const rows = () => table;

export async function draw(app, lesson) {
  const look = await lesson.look();
  const head = await lesson.head(look);
  const query = head.query[head.row];
  const seen = head.causal ? head.key.slice(0, head.row + 1) : head.key;
  const found = Object.entries(SCORES).map(([name, score]) =>
    [name, softmax(seen.map((key) => score(query, key)))]);
  table = [["score", "entropy", ...head.keys.slice(0, seen.length)],
    ...found.map(([name, weights]) => [name, entropy(weights), ...weights])];
  return [
    controls(...lesson.headControls(look), lesson.rowMenu(head)),
    element("div", { class: "lab" }, ...found.map(([name, weights]) =>
      panel(app, name, head.keys.slice(0, seen.length), weights, head.score === name)),
    card(app.said("entropy_title"), element("p", {},
      app.said("scoring_most", { bits: Math.log2(seen.length).toFixed(2) })))),
    width(app, lesson),
  ];
}

function panel(app, name, labels, weights, isOwn) {
  return card(app.said(`score_${name}`), element("p", { class: "formula" }, app.said(`formula_${name}`)),
    scroller(app.said(`score_${name}`), bars(labels.map((label, at) => [label, weights[at]]),
      { label: app.said(`score_${name}`), theme: app.seen, width: 290 })),
    element("p", { class: "note" }, app.said("entropy", { bits: entropy(weights).toFixed(2) }),
      isOwn ? ` · ${app.said("score_own")}` : ""));
}

/** Means over many random queries and keys of variance 1, the same for the same d. */
function sampled(d, isScaled) {
  const draw = normals(d + 11);
  const vector = () => Array.from({ length: d }, draw);
  const [sums, first] = [[0, 0, 0], []];
  for (let turn = 0; turn < DRAWS; turn++) {
    const query = vector();
    const scores = Array.from({ length: KEYS }, () => dot(query, vector()));
    const weights = softmax(scores.map((score) => (isScaled ? score / Math.sqrt(d) : score)));
    if (!turn) first.push(...weights);
    [entropy(weights), Math.max(...weights), slope(weights)].forEach((value, at) => {
      sums[at] += value / DRAWS;
    });
  }
  return { entropy: sums[0], most: sums[1], slope: sums[2], first };
}

const known = new Map();
const sample = (d, isScaled) => {
  const name = `${d}${isScaled}`;
  if (!known.has(name)) known.set(name, sampled(d, isScaled));
  return known.get(name);
};

function width(app, lesson) {
  const { d } = app.state;
  const near = WIDTHS.indexOf(WIDTHS.findLast((one) => one <= d));
  const label = app.said("width_title");
  const side = (isScaled) => {
    const found = sample(WIDTHS[near], isScaled);
    return element("section", {}, element("h4", {}, app.said(isScaled ? "score_scaled_dot" : "score_dot")),
      scroller(label, bars(found.first.map((weight, at) => [`k${at + 1}`, weight]),
        { label, theme: app.seen, width: 300 })),
      element("p", { class: "note" }, app.said("width_said", {
        bits: found.entropy.toFixed(2), most: found.most.toFixed(2), slope: found.slope.toFixed(3) })));
  };
  const line = (isScaled, colour) => ({ colour,
    points: WIDTHS.map((one, at) => [at, sample(one, isScaled).entropy]) });
  return card(label, element("p", {}, app.said("width_help")),
    controls(slider("d", "d", { min: 0, max: WIDTHS.length - 1, value: near, shown: String(WIDTHS[near]) },
      (at) => lesson.set({ d: WIDTHS[at] })),
    button(app.said("break_it"), () => lesson.set({ d: 512 }), { name: "break" })),
    element("div", { class: "pair" }, side(false), side(true)),
    scroller(label, curves([line(false, 1), line(true, 0)],
      { label, width: 620, height: 220, xName: "d", xTick: (at) => 2 ** at, mark: near })),
    element("p", { class: "note" }, app.said("width_legend")));
}
