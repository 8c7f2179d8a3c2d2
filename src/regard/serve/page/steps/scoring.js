/** Step 5: one query and its keys under five scores, and what width does to softmax. */
import { bars, curves } from "../draw.js";
import { button, card, controls, element, note, pair, said, scroller, slider } from "../parts.js";
import { dot, entropy, normals, SCORES, slope, softmax } from "../maths.js";

const KEYS = 8;
const DRAWS = 40;
const FORMULAS = {
  gaussian: "−½ w² |q − k|², w² = 1/√d", additive: "vᵀ tanh(W q + U k)", dot: "q · k",
  scaled_dot: "q · k / √d", cosine: "q · k / (|q| |k|)",
};
const WIDTHS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

export async function draw(app, lesson) {
  const look = await lesson.look();
  const head = await lesson.head(look);
  const n = head.causal ? head.row + 1 : head.key.length;
  const [seen, labels] = [head.key.slice(0, n), head.keys.slice(0, n)];
  const found = Object.entries(SCORES).map(([name, score]) =>
    [name, softmax(seen.map((key) => score(head.query[head.row], key)))]);
  lesson.table = [["score", "entropy", ...labels],
    ...found.map(([name, weights]) => [name, entropy(weights), ...weights])];
  return [
    width(app, lesson),
    controls(...lesson.headControls(look), lesson.rowMenu(head)),
    element("div.lab",
      found.map(([name, weights]) => panel(name, labels, weights, head.score === name)),
      card(said("entropy_title"),
        element("p", said("scoring_most", { bits: Math.log2(n).toFixed(2) })))),
  ];
}

function panel(name, labels, weights, isOwn) {
  const label = said(`score_${name}`);
  return card(label, element("p.formula", FORMULAS[name]),
    scroller(bars(labels.map((key, at) => [key, weights[at]]),
      { label, width: 290 })),
    note(said("entropy", { bits: entropy(weights).toFixed(2) }),
      isOwn && ` · ${said("score_own")}`));
}

/** Means over many random queries and keys of variance 1, the same for the same d. */
function sampled(d, isScaled) {
  const draw = normals(d + 11);
  const vector = () => Array.from({ length: d }, draw);
  const all = Array.from({ length: DRAWS }, () => {
    const query = vector();
    const scores = Array.from({ length: KEYS }, () => dot(query, vector()));
    return softmax(scores.map((score) => (isScaled ? score / Math.sqrt(d) : score)));
  });
  const mean = (value) => all.reduce((sum, weights) => sum + value(weights), 0) / DRAWS;
  return { bits: mean(entropy), most: mean((weights) => Math.max(...weights)), slope: mean(slope),
    first: all[0] };
}

const known = new Map();
const sample = (d, isScaled) => {
  const name = `${d}${isScaled}`;
  if (!known.has(name)) known.set(name, sampled(d, isScaled));
  return known.get(name);
};

function width(app, lesson) {
  const near = WIDTHS.findLastIndex((one) => one <= app.state.d);
  const label = said("width_title");
  const side = (isScaled) => {
    const { bits, most, slope, first } = sample(WIDTHS[near], isScaled);
    return element("section",
      element("h4", said(isScaled ? "score_scaled_dot" : "score_dot")),
      scroller(bars(first.map((weight, at) => [`k${at + 1}`, weight]),
        { label, width: 300 })),
      note(said("width_said", { bits: bits.toFixed(2), most: most.toFixed(2),
        slope: slope.toFixed(3) })));
  };
  const line = (isScaled, colour) => ({ colour,
    points: WIDTHS.map((one, at) => [at, sample(one, isScaled).bits]) });
  return card(label, element("p", said("width_help")),
    controls(slider("d", "d", { max: WIDTHS.length - 1, value: near, shown: WIDTHS[near] },
      (at) => lesson.set({ d: WIDTHS[at] })),
    button(said("break_it"), () => lesson.set({ d: 512 }), { name: "break" })),
    pair(side(false), side(true)),
    scroller(curves([line(false, 1), line(true, 0)],
      { label, most: 620, height: 220, xName: "d", xTick: (at) => 2 ** at, mark: near })),
    note(said("width_legend")));
}
