/** Step 8: encoder-decoder attention as curves and as a matrix; what rests on sinks is printed. */
import { ribbon } from "../draw.js";
import { card, element, note, said, scroller } from "../parts.js";
import { chosenView, showAttention } from "../view/panel.js";
import { placeOf } from "../view/units.js";

let panel = null;

export async function draw(app, lesson) {
  const look = await lesson.look();
  const { state } = app;
  const data = { ...look.panel, kinds: { cross: look.panel.kinds.cross } };
  state.kind = "cross";
  const curves = scroller(null, said("curves"));
  const hidden = element("p.note", { role: "status" });
  const root = element("div.panel");
  const bend = () => drawCurves(app, lesson, chosenView(data, state), curves, hidden);
  const onchange = () => {
    app.set({});
    bend();
  };
  panel = () => {
    showAttention(root, data, { state, onchange });
    bend();
  };
  return [card(said("curves"), curves, hidden, note(said("curves_help"))), root];
}

/** The panel measures what it draws, so it is drawn once it is on the page. */
export function after() {
  panel?.();
  panel = null;
}

function drawCurves(app, lesson, view, root, hidden) {
  const [keys, queries] = [view.keys, view.queries].map((units) => units.map(({ label }) => label));
  lesson.table = [["", ...keys], ...queries.map((label, at) => [label, ...view.weights[at]])];
  const weight = (from, to) => view.weights[to][from];
  const show = (at) => root.replaceChildren(ribbon(keys, queries, weight, {
    label: said("curves"), at, width: root.clientWidth - 8,
    onpoint: (next) => JSON.stringify(next) !== JSON.stringify(at) && show(next),
  }));
  show({ side: "target", place: placeOf(view.queries, app.state.row) });
  const mass = view.hidden.reduce((sum, [, share]) => sum + share, 0);
  const sinks = view.hidden.map(([label]) => label).join(said("and"));
  hidden.textContent = mass ? said("sink_mass", { percent: Math.round(100 * mass), sinks }) : "";
}
