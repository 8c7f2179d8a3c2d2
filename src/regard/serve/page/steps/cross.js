/** Step 8: encoder-decoder attention as curves and as a matrix; what rests on sinks is printed. */
import { ribbon } from "../draw.js";
import { card } from "../parts.js";
import { element } from "../view/elements.js";
import { showAttention } from "../view/panel.js";
import { unitsOf, viewOf } from "../view/units.js";
import { headOf } from "../view/weights.js";

let table = [[]];
export const rows = () => table;
let panel = null;

export async function draw(app, lesson) {
  const look = await lesson.look();
  const { state } = app;
  const data = { ...look.panel, kinds: { cross: look.panel.kinds.cross } };
  state.kind = "cross";
  const curves = element("div", { class: "scroller", tabindex: "0", role: "group",
    "aria-label": app.said("curves") });
  const hidden = element("p", { class: "note", role: "status" });
  const root = element("div", { class: "panel" });
  const bend = () => drawCurves(app, look, curves, hidden);
  panel = () => {
    showAttention(root, data, { words: app.words, theme: app.seen, state, onchange: () => {
      app.set({});
      bend();
    } });
    bend();
  };
  return [card(app.said("curves"), curves, hidden, element("p", { class: "note" }, app.said("curves_help"))), root];
}

/** The panel measures what it draws, so it is drawn once it is on the page. */
export function after() {
  panel?.();
  panel = null;
}

function drawCurves(app, look, root, hidden) {
  const { state } = app;
  const kind = look.panel.kinds.cross;
  const cut = state.words ? "words" : "pieces";
  const view = viewOf(headOf(kind, state.layer ?? kind.layers - 1, state.head), kind.columns,
    unitsOf(look.panel.sides.tgt[cut]), unitsOf(look.panel.sides.src[cut]),
    { isCausal: false, hidesSinks: state.sinks });
  table = [["", ...view.keys.map((key) => key.label)],
    ...view.queries.map((query, at) => [query.label, ...view.weights[at]])];
  const row = Math.max(0, view.queries.findIndex((unit) => state.row < unit.start + unit.size));
  const show = (place) => root.replaceChildren(ribbon(
    view.keys.map((key) => key.label), view.queries.map((query) => query.label),
    (from, to) => view.weights[to][from],
    { label: app.said("curves"), theme: app.seen, at: place, width: root.clientWidth - 8,
      onpoint: (next) => JSON.stringify(next) !== JSON.stringify(place) && show(next) }));
  show({ side: "target", place: row });
  const mass = view.hidden.reduce((sum, [, share]) => sum + share, 0);
  hidden.textContent = view.hidden.length
    ? app.said("sink_mass", { percent: Math.round(100 * mass), sinks: view.hidden.map(([label]) => label).join(app.said("and")) })
    : "";
}
