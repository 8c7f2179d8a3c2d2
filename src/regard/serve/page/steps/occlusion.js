/** Step 10: attention beside what happens when a source token is taken away. */
import { box, cut, figure, room, widthOf, words } from "../draw.js";
import {
  card, controls, element, note, numberOf, plate, said, scroller, tableOf, within,
} from "../parts.js";
import { agreement } from "../maths.js";
import { labelsOf } from "../pieces.js";
import { colourAt, css } from "../view/colours.js";
import { headOf } from "../view/weights.js";

export async function draw(app, lesson) {
  const look = await lesson.look();
  const found = await app.once("/api/v1/occlude",
    { ...lesson.asked, translation: look.translation });
  const kind = look.panel.kinds.cross;
  const layer = within(app.state.layer ?? kind.layers - 1, kind.layers);
  const head = Math.min(app.state.head, kind.heads - 1);
  const [queries, sources] = [found.tgt_pieces, found.src_pieces].map(labelsOf);
  const skip = kind.columns - sources.length - 1; // a token that asks for a language
  const looked = headOf(kind, layer, head).map((row) => row.slice(skip, skip + sources.length));
  const lost = queries.map((_, to) => found.delta.map((line) => line[to]));
  const row = within(app.state.row, queries.length);
  lesson.table = [["source", "attention", "loss of log p"],
    ...sources.map((label, from) => [label, looked[row][from], lost[row][from]])];
  return [
    controls(lesson.rowMenu({ queries, row }, "written_token"),
      lesson.numberMenu("layer", kind.layers, layer),
      lesson.numberMenu("head", kind.heads, head, [-1, said("mean")])),
    plate(sideBySide(said("beside", { token: queries[row] }), sources, looked[row], lost[row]),
      element("p.verdict", verdict(looked[row], lost[row])), note(said("rho_help"))),
    every(queries, row, looked, lost),
  ];
}

function verdict(weights, losses) {
  const rho = agreement(weights, losses);
  if (rho == null) return said("agree_none");
  const name = rho > 0.6 ? "agree_much" : rho > 0.2 ? "agree_some" : "agree_little";
  return said(name, { rho: numberOf(rho) });
}

function sideBySide(title, labels, weights, losses) {
  const line = 30;
  const middle = Math.min(150, Math.max(60, ...labels.map((label) => widthOf(label) + 20)));
  const wide = Math.max(50, (room(664) - middle - 124) / 2);
  const most = Math.max(0.5, ...losses.map(Math.abs));
  const [left, right] = [wide + 60, wide + 60 + middle];
  return figure(right + wide + 64, 34 + labels.length * line, title,
    words(left, 18, said("attention_side"), "tick end"),
    words(right, 18, said("occlusion_side"), "tick"),
    labels.flatMap((label, at) => {
      const y = 30 + at * line;
      const [weight, loss] = [weights[at], losses[at]];
      const [long, far] = [weight * wide, (Math.abs(loss) / most) * wide];
      return [
        box(null, left - long, y, long, 20, { rx: 2, fill: css(colourAt(0.6)) }),
        words(left - long - 8, y + 15, weight.toFixed(2), "number end"),
        words((left + right) / 2, y + 15, cut(label, middle - 8), "middle"),
        box(loss < 0 ? "gain" : "loss", right, y, far, 20, { rx: 2 }),
        words(right + far + 8, y + 15, `${loss < 0 ? "" : "+"}${numberOf(loss)}`, "number"),
      ];
    }));
}

function every(tokens, row, looked, lost) {
  const table = tableOf([[said("written_token"), said("rho")], ...tokens.map((label, at) => {
    const rho = agreement(looked[at], lost[at]);
    return [label, rho == null ? "–" : numberOf(rho)];
  })]);
  table.className = "agree";
  table.tBodies[0].rows[row].setAttribute("aria-current", "true");
  return card(said("every_token"), scroller(table, said("every_token")));
}
