/** Step 9: a beam search as a lattice; a token can be forced, and the search goes on from there. */
import { button, slider } from "../controls.js";
import { cut, figure, svg, words } from "../draw.js";
import { card, controls, scroller } from "../parts.js";
import { labelsOf, textOf } from "../pieces.js";
import { colourAt, css, textOn } from "../view/colours.js";
import { element } from "../view/elements.js";
import { headOf } from "../view/weights.js";

const [WIDE, TALL, GAP] = [118, 40, 26];
let table = [[]];
export const rows = () => table;

/** Every candidate with its node before it: the kept ones of one step are the parents of the next. */
function nodesOf(steps) {
  let parents = [null];
  return steps.map((step, column) => {
    const nodes = step.map((one, row) => ({ ...one, row, column, before: parents[one.parent] }));
    parents = nodes.filter((one) => one.fate === "kept");
    return nodes;
  });
}

const pathTo = (node) => (node ? [...pathTo(node.before), node] : []);
const piecesOf = (node) => pathTo(node).map((one) => one.piece);

/** The nodes of the hypothesis that won. */
function winners(columns, pieces) {
  const ends = columns.flat().filter((node) => node.fate !== "pruned");
  const wanted = pieces.join("\u0000");
  const end = ends.find((node) => piecesOf(node).join("\u0000") === wanted)
    ?? ends.find((node) => [...piecesOf(node), "</s>"].join("\u0000") === wanted);
  return new Set(pathTo(end));
}

export async function draw(app, lesson) {
  const { beam, prefix, node: chosenName } = app.state;
  const asked = { ...lesson.asked, beam: Math.min(beam, app.limits.beam) };
  const own = await app.once("/api/v1/trace", asked);
  const found = prefix ? await app.once("/api/v1/trace", { ...asked, prefix }) : own;
  const columns = nodesOf(found.steps);
  const best = winners(columns, found.hypotheses[0]?.pieces ?? []);
  const chosen = columns.flat().find((node) => `${node.column}-${node.row}` === chosenName)
    ?? [...best].at(Math.min(1, best.size - 1)) ?? columns[0][0];
  table = [["step", "rank", "piece", "log_prob", "total", "score", "fate", "parent"],
    ...columns.flat().map((node) => [node.column + 1, node.row + 1, node.piece, node.log_prob,
      node.total, node.score, node.fate, node.parent + 1])];
  const lattice = scroller(app.said("lattice"),
    drawn(app, columns, best, chosen, (node) => lesson.set({ node: `${node.column}-${node.row}` })));
  walkable(lattice, columns, chosen, lesson);
  return [
    controls(slider("beam", app.said("beam_width"), { min: 1, max: app.limits.beam, value: asked.beam },
      (value) => lesson.set({ beam: value, node: "" })),
    ...(prefix ? [button(app.said("unforce"), () => lesson.set({ prefix: "", node: "" }), { name: "unforce" })] : [])),
    card(app.said("lattice"), lattice, element("p", { class: "note" }, app.said("lattice_help"))),
    element("div", { class: "pair" }, await about(app, lesson, chosen),
      results(app, own, prefix ? found : null, prefix)),
  ];
}

/** Arrow keys go from candidate to candidate. */
function walkable(lattice, columns, chosen, lesson) {
  lattice.dataset.control = "lattice";
  lattice.addEventListener("keydown", (event) => {
    const [right, down] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [];
    if (right === undefined) return;
    event.preventDefault();
    const column = Math.min(Math.max(chosen.column + right, 0), columns.length - 1);
    const row = Math.min(Math.max(chosen.row + down, 0), columns[column].length - 1);
    lesson.set({ node: `${column}-${row}` });
  });
}

function drawn(app, columns, best, chosen, onchoose) {
  const rows = Math.max(...columns.map((column) => column.length));
  const centre = (node) => [node.column * (WIDE + GAP) + 4, 26 + node.row * (TALL + 8)];
  const links = columns.flat().filter((node) => node.before).map((node) => {
    const [[x2, y2], [x1, y1]] = [centre(node), centre(node.before)];
    const [from, to] = [x1 + WIDE, y1 + TALL / 2];
    const kind = best.has(node) ? "best" : node.fate === "pruned" ? "pruned" : "kept";
    return svg("path", { class: `branch ${kind}`,
      d: `M${from} ${to}C${from + GAP / 2} ${to} ${x2 - GAP / 2} ${y2 + TALL / 2} ${x2} ${y2 + TALL / 2}` });
  });
  const boxes = columns.flat().map((node) => {
    const [x, y] = centre(node);
    const share = Math.exp(node.log_prob);
    const label = labelsOf([node.piece])[0];
    const colour = colourAt(0.15 + 0.6 * share, app.seen);
    const isPruned = node.fate === "pruned";
    const ink = isPruned ? null : textOn(colour);
    const kind = ["node", node.fate, best.has(node) && "best", node === chosen && "chosen"].filter(Boolean).join(" ");
    return svg("g", { class: kind, "data-node": `${node.column}-${node.row}`, onclick: () => onchoose(node) },
      svg("title", {}, `${label} p ${share.toFixed(4)}, Σ log p ${node.total.toFixed(3)}`),
      svg("rect", { x, y, width: WIDE, height: TALL, rx: 7, fill: isPruned ? null : css(colour) }),
      words(x + 8, y + 17, cut(label, WIDE - 52), { fill: ink }),
      words(x + WIDE - 8, y + 17, share < 0.005 ? "<.01" : share.toFixed(2), { "text-anchor": "end", class: "number", fill: ink }),
      words(x + 8, y + 33, `Σ ${node.total.toFixed(2)}`, { class: "small number", fill: ink }),
      words(x + WIDE - 8, y + 33, node.score.toFixed(2), { "text-anchor": "end", class: "small number", fill: ink }));
  });
  const heads = columns.map((_, at) => words(at * (WIDE + GAP) + 8, 14, app.said("step_n", { n: at + 1 }), { class: "tick" }));
  return figure(columns.length * (WIDE + GAP), 30 + rows * (TALL + 8), app.said("lattice"), ...heads, ...links, ...boxes);
}

async function about(app, lesson, node) {
  const pieces = piecesOf(node);
  const label = labelsOf([node.piece])[0];
  const text = textOf(pieces);
  const canForce = text && node.piece !== "</s>";
  return card(app.said("node_of", { label, step: node.column + 1 }),
    element("dl", { class: "facts" }, ...[
      ["p", Math.exp(node.log_prob).toFixed(4)], ["Σ log p", node.total.toFixed(4)],
      [app.said("score_name"), node.score.toFixed(4)], [app.said("fate"), app.said(`fate_${node.fate}`)],
    ].map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)))),
    await nodeLooks(app, lesson, pieces, text),
    canForce && button(app.said("force"), () => lesson.set({ prefix: text, node: "" }), { name: "force", kind: "plain main" }));
}

/** Where the network looked when it wrote the last of these pieces. */
async function nodeLooks(app, lesson, pieces, text) {
  if (!text) return null;
  const found = await app.once("/api/v1/attend", { ...lesson.asked, translation: text });
  const { shape: [layers, heads, rows, columns], uint8 } = found.weights.cross;
  const bytes = Uint8Array.from(atob(uint8), (sign) => sign.charCodeAt(0));
  const flat = headOf({ bytes, heads, rows, columns }, layers - 1, -1);
  const row = Math.min(pieces.length, rows) - 1;
  const weights = Array.from(flat.subarray(row * columns, (row + 1) * columns));
  const line = element("div", { class: "line" }, ...labelsOf(found.src_pieces).map((label, at) => {
    const colour = colourAt(weights[at], app.seen);
    const chip = element("span", { class: "chip still" }, label,
      element("span", { class: "number" }, weights[at].toFixed(2)));
    chip.style.background = css(colour);
    chip.style.color = textOn(colour);
    return chip;
  }));
  return element("div", {}, element("p", { class: "note" }, app.said("node_looks")), line);
}

function results(app, own, forced, prefix) {
  const list = (found) => element("ol", { class: "results" }, ...found.hypotheses.map((one) =>
    element("li", {}, element("span", {}, one.text), element("span", { class: "number" }, one.score.toFixed(3)))));
  return card(app.said("beam_results"), list(own),
    forced && element("h4", {}, app.said("forced_results", { prefix })), forced && list(forced));
}
