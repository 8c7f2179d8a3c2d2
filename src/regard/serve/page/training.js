/** Training: the curves of the runs that the server was given, while they grow. */
import { ask, Problem } from "./api.js";
import { keepingFocus, menu, slider } from "./controls.js";
import { curves, cut, figure, heat, words } from "./draw.js";
import { exportCard } from "./export.js";
import { card, controls, scroller } from "./parts.js";
import { labelsOf } from "./pieces.js";
import { problemCard } from "./problems.js";
import { element } from "./view/elements.js";
import { headOf } from "./view/weights.js";

const PAUSE = 3000;
const GROUPS = [
  ["loss", ["loss", "dev_loss"]], ["quality", ["dev_bleu", "dev_chrf"]],
  ["accuracy", ["dev_accuracy", "dev_exact"]], ["lr", ["lr"]], ["speed", ["tokens_per_s"]],
];

export function showTraining(root, app) {
  let [timer, runs, isGone] = [0, app.runs, false];
  const body = element("div", {});
  const title = element("h1", { class: "hidden" }, app.said("training_title"));
  root.replaceChildren(title, body, exportCard(app, body, "regard-training", rows));
  keepingFocus(body, draw);
  timer = setTimeout(poll, PAUSE);
  const born = element("div", {});
  body.after(born);
  if (app.snapshots.length) showBirth(app, born);

  function run() {
    return runs[Math.min(Math.max(app.state.run, 0), runs.length - 1)];
  }

  async function poll() {
    try {
      const text = JSON.stringify(runs);
      runs = app.runs = (await ask("/api/v1/runs")).runs;
      if (JSON.stringify(runs) !== text) keepingFocus(body, draw);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      body.replaceChildren(problemCard(app, problem, () => app.show()));
      return;
    }
    if (!isGone) timer = setTimeout(poll, PAUSE);
  }

  function draw() {
    if (!runs.length) {
      body.replaceChildren(card(app.said("no_runs"), element("p", {}, app.said("no_runs_help")),
        element("pre", { class: "code", tabindex: "0" }, "regard train -o model\nregard serve --run model")));
      return;
    }
    const one = run();
    const names = runs.map((each, at) => [at, each.name]);
    const places = runs.indexOf(one);
    const parts = GROUPS.map(([name, keys]) => chart(one, name, keys)).filter(Boolean);
    body.replaceChildren(
      controls(menu("run", app.said("run"), names, places, (at) => {
        app.set({ run: at });
        keepingFocus(body, draw);
      }), element("p", { class: "note", role: "status" }, state(one))),
      element("div", { class: "charts" }, ...parts), samples(one));
  }

  function state(one) {
    const steps = Object.values(one.series).flatMap((series) => series.map(([step]) => step));
    return app.said("run_at", { step: Math.max(0, ...steps).toLocaleString() });
  }

  function chart(one, name, keys) {
    const percent = (key, points) => // as the other curve beside it is
      (key === "dev_accuracy" ? points.map(([step, share]) => [step, share && 100 * share]) : points);
    const found = keys
      .map((key, colour) => ({ key, colour, points: percent(key, one.series[key] ?? []) }))
      .filter((line) => line.points.length);
    if (!found.length) return null;
    const label = app.said(`chart_${name}`);
    const legend = element("p", { class: "note keys-of" }, ...found.map((line) =>
      element("span", { class: `key key-${line.colour}` },
        `${app.said(`series_${line.key}`)} ${last(line.points)}`)));
    return card(label, scroller(label, curves(found, { label, width: 560, height: 240, xName: app.said("updates") })), legend);
  }

  function last(points) {
    const value = points.findLast(([, y]) => y != null)?.[1];
    return value == null ? "" : Number(value.toPrecision(4)).toLocaleString();
  }

  function samples(one) {
    if (!one.samples?.length) return null;
    const steps = one.samples.map((sample) => sample.step);
    const at = Math.min(app.state.sample, steps.length - 1);
    const sample = one.samples[at];
    return card(app.said("samples"), controls(slider("sample", app.said("checkpoint"),
      { min: 0, max: steps.length - 1, value: at, shown: sample.step.toLocaleString() }, (value) => {
        app.set({ sample: value });
        keepingFocus(body, draw);
      })), ...sample.texts.map((one) => element("p", { class: "quote" }, one.source, element("br"), `→ ${one.translation}`)));
  }

  function rows() {
    if (!runs.length) return [[]];
    const keys = Object.keys(run().series);
    const steps = [...new Set(keys.flatMap((key) => run().series[key].map(([step]) => step)))].sort((a, b) => a - b);
    const values = keys.map((key) => new Map(run().series[key]));
    return [["step", ...keys], ...steps.map((step) => [step, ...values.map((one) => one.get(step) ?? "")])];
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
  const at = Math.min(app.state.snapshot, snapshots.length - 1);
  const text = app.state.text.trim() || app.said(
    snapshots[0].directions[0]?.from.startsWith("en") ? "lesson_en" : "lesson_zh");
  const again = (snapshot) => {
    app.set({ snapshot });
    showBirth(app, root);
  };
  try {
    const last = await app.once("/api/v1/attend", { text, model: snapshots.at(-1).name });
    const found = await app.once("/api/v1/attend",
      { text, translation: last.translation, model: snapshots[at].name });
    if (at !== Math.min(app.state.snapshot, snapshots.length - 1)) return;
    const update = updateOf(snapshots[at]).toLocaleString();
    keepingFocus(root, () => root.replaceChildren(card(app.said("born"),
      controls(slider("snapshot", app.said("checkpoint"),
        { min: 0, max: snapshots.length - 1, value: at, shown: update }, again)),
      scroller(app.said("born"), birth(app, found)),
      element("p", { class: "note" }, app.said("born_help")))));
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    root.replaceChildren(problemCard(app, problem, () => again(at)));
  }
}

function birth(app, found) {
  const { shape: [layers, heads, n, columns], uint8 } = found.weights.cross;
  const bytes = Uint8Array.from(atob(uint8), (sign) => sign.charCodeAt(0));
  const flat = headOf({ bytes, heads, rows: n, columns }, layers - 1, -1);
  const weights = Array.from({ length: n }, (_, row) =>
    Array.from(flat.subarray(row * columns, (row + 1) * columns)));
  const [left, top, cell] = [104, 80, 34];
  return figure(left + columns * cell + 4, top + n * cell + 4, app.said("born"),
    heat(weights, { x: left, y: top, width: columns * cell, height: n * cell, theme: app.seen }),
    ...labelsOf(found.tgt_pieces).map((label, at) => words(left - 8, top + at * cell + 22,
      cut(label, left - 12), { "text-anchor": "end" })),
    ...labelsOf(found.src_pieces).map((label, at) => {
      const [x, y] = [left + at * cell + 22, top - 8];
      return words(x, y, cut(label, top - 12), { transform: `rotate(-90 ${x} ${y})` });
    }));
}
