/** Step 9: a beam search as a lattice; a token can be forced, and the search goes on from there. */
import { lastMean } from "../api.js";
import { box, cut, figure, words } from "../draw.js";
import {
  button, card, controls, element, note, numberOf, pair, said, scroller, svg, within,
} from "../parts.js";
import { labelsOf, textOf } from "../pieces.js";
import { colourAt, css, textOn } from "../view/colours.js";
import { onArrow } from "../view/elements.js";
import { chip, shade } from "../view/sentence.js";

const [WIDE, TALL, GAP] = [118, 40, 26];

/** Every candidate with the one before it: those kept at one step are the parents of the next. */
function nodesOf(steps) {
  let parents = [null];
  return steps.map((step, column) => {
    const nodes = step.map((one, row) =>
      ({ ...one, row, column, name: `${column}-${row}`, before: parents[one.parent] }));
    parents = nodes.filter((one) => one.fate === "kept");
    return nodes;
  });
}

const pathTo = (node) => (node ? [...pathTo(node.before), node] : []);
const piecesOf = (node) => pathTo(node).map((one) => one.piece);
const labelOf = (node) => labelsOf(piecesOf(node)).at(-1);

/** The nodes of the hypothesis that won. */
function winners(columns, pieces) {
  const ends = columns.flat().filter((node) => node.fate !== "pruned");
  const wanted = JSON.stringify(pieces);
  const end = ends.find((node) => JSON.stringify(piecesOf(node)) === wanted)
    ?? ends.find((node) => JSON.stringify([...piecesOf(node), "</s>"]) === wanted);
  return new Set(pathTo(end));
}

export async function draw(app, lesson) {
  const { prefix, node: chosenName } = app.state;
  const beam = Math.min(app.state.beam, app.limits.beam);
  const asked = { ...lesson.asked, beam };
  const own = await app.once("/api/v1/trace", asked);
  const found = prefix ? await app.once("/api/v1/trace", { ...asked, prefix }) : own;
  const columns = nodesOf(found.steps);
  const nodes = columns.flat();
  const best = winners(columns, found.hypotheses[0]?.pieces ?? []);
  const chosen = nodes.find((node) => node.name === chosenName)
    ?? [...best].at(Math.min(1, best.size - 1)) ?? nodes[0];
  lesson.table = [["step", "rank", "piece", "log_prob", "total", "score", "fate", "parent"],
    ...nodes.map((node) => [node.column + 1, node.row + 1, node.piece, node.log_prob,
      node.total, node.score, node.fate, node.parent + 1])];
  const lattice = scroller(drawn(columns, best, chosen, (node) =>
    lesson.set({ node: node.name })));
  lattice.dataset.control = "lattice";
  lattice.onkeydown = (event) => onArrow(event, (down, right) => {
    const column = columns[within(chosen.column + right, columns.length)];
    lesson.set({ node: column[within(chosen.row + down, column.length)].name });
  });
  return [
    controls(
      lesson.slider("beam", "beam_width", { min: 1, max: app.limits.beam, value: beam },
        { node: "" }),
      prefix && button(said("unforce"), () => lesson.set({ prefix: "", node: "" }),
        { name: "unforce" })),
    card(said("lattice"), lattice, note(said("lattice_help", { power: found.length_penalty }))),
    pair(await about(app, lesson, chosen), results(own, prefix && found, prefix)),
  ];
}

function drawn(columns, best, chosen, onchoose) {
  const rows = Math.max(...columns.map((column) => column.length));
  const corner = (node) => [node.column * (WIDE + GAP) + 4, 26 + node.row * (TALL + 8)];
  const link = (node) => {
    const [[x2, to], [left, from]] = [corner(node), corner(node.before)];
    const [x1, y1, y2] = [left + WIDE, from + TALL / 2, to + TALL / 2];
    const kind = best.has(node) ? "best" : node.fate;
    return svg(`path.branch.${kind}`,
      { d: `M${x1} ${y1}C${x1 + GAP / 2} ${y1} ${x2 - GAP / 2} ${y2} ${x2} ${y2}` });
  };
  const place = (node) => {
    const [x, y] = corner(node);
    const share = Math.exp(node.log_prob);
    const label = labelOf(node);
    const colour = colourAt(0.15 + 0.6 * share);
    const isPruned = node.fate === "pruned";
    const [fill, ink] = isPruned ? [] : [css(colour), textOn(colour)];
    const text = (dx, dy, said, kind) => words(x + dx, y + dy, said, kind, { fill: ink });
    const kinds = ["node", node.fate, best.has(node) && "best", node === chosen && "chosen"];
    return svg("g", { class: kinds.filter(Boolean).join(" "), "data-node": node.name,
      onclick: () => onchoose(node) },
    svg("title", `${label} p ${share.toFixed(4)}, Σ log p ${node.total.toFixed(3)}`),
    box(null, x, y, WIDE, TALL, { rx: 7, fill }),
    text(8, 17, cut(label, WIDE - 52)),
    text(WIDE - 8, 17, share < 0.005 ? "<.01" : share.toFixed(2), "number end"),
    text(8, 33, `Σ ${numberOf(node.total)}`, "small number"),
    text(WIDE - 8, 33, numberOf(node.score), "small number end"));
  };
  const nodes = columns.flat();
  return figure(columns.length * (WIDE + GAP), 30 + rows * (TALL + 8), said("lattice"),
    columns.map((_, at) =>
      words(at * (WIDE + GAP) + 8, 14, said("step_n", { n: at + 1 }), "tick")),
    nodes.filter((node) => node.before).map(link), nodes.map(place));
}

async function about(app, lesson, node) {
  const pieces = piecesOf(node);
  const text = textOf(pieces);
  const facts = [["p", numberOf(Math.exp(node.log_prob), 4)], ["Σ log p", numberOf(node.total, 4)],
    [said("score_name"), numberOf(node.score, 4)],
    [said("fate"), said(`fate_${node.fate}`)]];
  return card(said("node_of", { label: labelOf(node), step: node.column + 1 }),
    element("dl.facts", facts.map(([name, value]) =>
      element("div", element("dt", name), element("dd", value)))),
    text && await nodeLooks(app, lesson, pieces, text),
    text && node.piece !== "</s>" && button(said("force"),
      () => lesson.set({ prefix: text, node: "" }), { name: "force", kind: "plain main" }));
}

/** Where the network looked when it wrote the last of these pieces. */
async function nodeLooks(app, lesson, pieces, text) {
  const found = await app.once("/api/v1/attend", { ...lesson.asked, translation: text });
  const rows = lastMean(found);
  const weights = rows[within(pieces.length - 1, rows.length)];
  return element("div", note(said("node_looks")),
    element("div.line.still", labelsOf(found.src_pieces).map((label, at) =>
      shade(chip(label, weights[at].toFixed(2)), weights[at]))));
}

function results(own, forced, prefix) {
  const list = (found) => element("ol.results", found.hypotheses.map((one) =>
    element("li", element("span", one.text), element("span.number", numberOf(one.score, 3)))));
  return card(said("beam_results"), list(own),
    forced && element("h4", said("forced_results", { prefix })), forced && list(forced));
}
