/** Training: the curves of the runs that the server was given, while they grow. */
import { ask, lastMean } from "./api.js";
import { curves, grid } from "./draw.js";
import { exportCard } from "./export.js";
import {
  card, controls, element, keepingFocus, menu, note, plate, said, scroller, slider, within,
} from "./parts.js";
import { labelsOf } from "./pieces.js";
import { showProblem } from "./problems.js";

const PAUSE = 3000;
const GROUPS = [
  ["loss", ["loss", "dev_loss"]], ["quality", ["dev_bleu", "dev_chrf"]],
  ["accuracy", ["dev_accuracy", "dev_exact"]], ["lr", ["lr"]], ["speed", ["tokens_per_s"]],
];
const START = "regard train -o model\nregard serve --run model";

export function showTraining(root, app) {
  let [timer, runs, isGone] = [0, app.runs, false];
  const body = element("div");
  const born = element("div.born");
  const run = () => runs[within(app.state.run, runs.length)];
  const set = (name) => (value) => {
    app.set({ [name]: value });
    keepingFocus(body, draw);
  };
  root.replaceChildren(element("h1.hidden", said("training")), body, born,
    exportCard(app, root, "regard-training", rows));
  draw();
  timer = setTimeout(poll, PAUSE);
  if (app.snapshots.length) showBirth(app, born);

  async function poll() {
    try {
      const text = JSON.stringify(runs);
      runs = app.runs = (await ask("/api/v1/runs")).runs;
      if (JSON.stringify(runs) !== text) keepingFocus(body, draw);
    } catch (problem) {
      showProblem(app, body, problem, () => app.show());
      return;
    }
    if (!isGone) timer = setTimeout(poll, PAUSE);
  }

  function draw() {
    if (!runs.length) {
      body.replaceChildren(card(said("no_runs"), element("p", said("no_runs_help")),
        element("pre.code", { tabindex: 0 }, START)));
      return;
    }
    const one = run();
    const steps = Object.values(one.series).flatMap((series) => series.map(([step]) => step));
    const at = said("run_at", { step: Math.max(0, ...steps).toLocaleString() });
    const names = runs.map((each, n) => [n, each.name]);
    body.replaceChildren(
      controls(menu("run", said("run"), names, runs.indexOf(one), set("run")),
        element("p.note", { role: "status" }, at)),
      element("div.charts", GROUPS.map(([name, keys]) => chart(one, name, keys))),
      ...samples(one));
  }

  function chart(one, name, keys) {
    const found = keys.map((key, colour) => {
      const times = key === "dev_accuracy" ? 100 : 1; // in per cent, as the curve beside it is
      const points = (one.series[key] ?? []).map(([step, y]) => [step, y == null ? y : times * y]);
      return { key, colour, points };
    }).filter((line) => line.points.length);
    if (!found.length) return null;
    const label = said(`chart_${name}`);
    return plate(curves(found, { label, most: 560, height: 240, xName: said("updates") }),
      note(found.map((line) => element(`span.key.key-${line.colour}`,
        `${said(`series_${line.key}`)} ${last(line.points)}`))));
  }

  function last(points) {
    const value = points.findLast(([, y]) => y != null)?.[1];
    return value == null ? "" : Number(value.toPrecision(4)).toLocaleString();
  }

  function samples({ samples: found }) {
    if (!found?.length) return [];
    const at = within(app.state.sample, found.length);
    return [card(said("samples"),
      controls(slider("sample", said("checkpoint"),
        { max: found.length - 1, value: at, shown: found[at].step.toLocaleString() },
        set("sample"))),
      found[at].texts.map((one) =>
        element("p.quote", one.source, element("br"), `→ ${one.translation}`)))];
  }

  function rows() {
    if (!runs.length) return [[]];
    const keys = Object.keys(run().series);
    const values = keys.map((key) => new Map(run().series[key]));
    const steps = [...new Set(values.flatMap((one) => [...one.keys()]))].sort((a, b) => a - b);
    return [["step", ...keys],
      ...steps.map((step) => [step, ...values.map((one) => one.get(step) ?? "")])];
  }

  return () => {
    isGone = true;
    clearTimeout(timer);
  };
}

const updateOf = (model) => Number(model.name.match(/\d+/)[0]);

/** One sentence and one translation, looked at by each snapshot of a run. */
async function showBirth(app, root) {
  const snapshots = [...app.snapshots].sort((one, other) => updateOf(one) - updateOf(other));
  const place = () => within(app.state.snapshot, snapshots.length);
  const at = place();
  const own = app.runs.map((one) => one.samples?.at(-1)?.texts[0]?.source).find(Boolean);
  const text = app.state.text.trim() || own || app.examples(snapshots[0].directions[0]?.from)[0];
  const again = (snapshot) => {
    app.set({ snapshot });
    showBirth(app, root);
  };
  try {
    const last = await app.once("/api/v1/attend", { text, model: snapshots.at(-1).name });
    const found = await app.once("/api/v1/attend",
      { text, translation: last.translation, model: snapshots[at].name });
    if (at !== place()) return;
    const shown = updateOf(snapshots[at]).toLocaleString();
    keepingFocus(root, () => root.replaceChildren(card(said("born"),
      controls(slider("snapshot", said("checkpoint"),
        { max: snapshots.length - 1, value: at, shown }, again)),
      scroller(grid(said("born"), labelsOf(found.tgt_pieces), labelsOf(found.src_pieces),
        lastMean(found), { cell: 34 })),
      note(said("born_help")))));
  } catch (problem) {
    showProblem(app, root, problem, () => again(at));
  }
}
