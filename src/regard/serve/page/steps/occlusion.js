/** Step 10: attention beside what happens when a source token is taken away. */
import { menu } from "../controls.js";
import { cut, figure, svg, widthOf, words } from "../draw.js";
import { card, controls, scroller } from "../parts.js";
import { agreement } from "../maths.js";
import { labelsOf } from "../pieces.js";
import { colourAt, css } from "../view/colours.js";
import { element } from "../view/elements.js";
import { headOf } from "../view/weights.js";

let table = [[]];
export const rows = () => table;

export async function draw(app, lesson) {
  const look = await lesson.look();
  const found = await app.once("/api/v1/occlude", { ...lesson.asked, translation: look.translation });
  const kind = look.panel.kinds.cross;
  const { layer, head } = app.state;
  const at = Math.min(layer ?? kind.layers - 1, kind.layers - 1);
  const which = Math.min(head, kind.heads - 1);
  const flat = headOf(kind, at, which);
  const targets = labelsOf(found.tgt_pieces);
  const sources = labelsOf(found.src_pieces);
  const skip = kind.columns - sources.length - 1; // a token that asks for a language
  const row = Math.min(app.state.row, targets.length - 1);
  const looked = (to) => sources.map((_, from) => flat[to * kind.columns + from + skip]);
  const lost = (to) => found.delta.map((line) => line[to]);
  table = [["source", "attention", "loss of log p"],
    ...sources.map((label, from) => [label, looked(row)[from], lost(row)[from]])];
  const range = (length) => Array.from({ length }, (_, n) => [n, String(n + 1)]);
  return [
    controls(
      menu("row", app.said("written_token"), targets.map((label, n) => [n, `${n + 1} · ${label}`]), row,
        (value) => lesson.set({ row: value, column: null })),
      menu("layer", app.said("layer"), range(kind.layers), at, (value) => lesson.set({ layer: value })),
      menu("head", app.said("head"), [[-1, app.said("mean")], ...range(kind.heads)], which,
        (value) => lesson.set({ head: value }))),
    card(app.said("beside", { token: targets[row] }),
      scroller(app.said("beside", { token: targets[row] }), sideBySide(app, sources, looked(row), lost(row))),
      element("p", { class: "verdict", role: "status" }, verdict(app, looked(row), lost(row)))),
    every(app, lesson, targets, row, looked, lost),
  ];
}

function verdict(app, weights, losses) {
  const rho = agreement(weights, losses);
  if (rho == null) return app.said("agree_none");
  const name = rho > 0.6 ? "agree_much" : rho > 0.2 ? "agree_some" : "agree_little";
  return app.said(name, { rho: rho.toFixed(2).replace("-", "−") });
}

function sideBySide(app, labels, weights, losses) {
  const line = 30;
  const middle = Math.min(150, Math.max(60, ...labels.map((label) => widthOf(label) + 20)));
  const room = Math.max(50, Math.min(240, (innerWidth - 246) / 2)); // a phone has less
  const most = Math.max(0.5, ...losses.map(Math.abs));
  const [left, right] = [room + 60, room + 60 + middle];
  const draw = labels.flatMap((label, at) => {
    const y = 30 + at * line;
    const long = weights[at] * room;
    const far = (Math.abs(losses[at]) / most) * room;
    return [
      svg("rect", { x: left - long, y, width: long, height: 20, rx: 2, fill: css(colourAt(0.6, app.seen)) }),
      words(left - long - 8, y + 15, weights[at].toFixed(2), { "text-anchor": "end", class: "number" }),
      words((left + right) / 2, y + 15, cut(label, middle - 8), { "text-anchor": "middle" }),
      svg("rect", { x: right, y, width: far, height: 20, rx: 2, class: losses[at] < 0 ? "gain" : "loss" }),
      words(right + far + 8, y + 15, `${losses[at] < 0 ? "−" : "+"}${Math.abs(losses[at]).toFixed(2)}`, { class: "number" }),
    ];
  });
  return figure(right + room + 64, 34 + labels.length * line, app.said("occlusion_title"),
    words(left, 18, app.said("attention_side"), { "text-anchor": "end", class: "tick" }),
    words(right, 18, app.said("occlusion_side"), { class: "tick" }), ...draw);
}

function every(app, lesson, targets, row, looked, lost) {
  const lines = targets.map((label, at) => {
    const rho = agreement(looked(at), lost(at));
    return element("tr", { "aria-current": at === row ? "true" : null },
      element("th", { scope: "row" }, label),
      element("td", { class: "number" }, rho == null ? "–" : rho.toFixed(2).replace("-", "−")));
  });
  return card(app.said("every_token"), scroller(app.said("every_token"), element("table", { class: "agree" },
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, app.said("written_token")),
      element("th", { scope: "col" }, app.said("rho")))), element("tbody", {}, ...lines))));
}
