/** Step 6: masks as things one can see, and take away. */
import { box, grid, room } from "../draw.js";
import { controls, element, note, plate, said, svg } from "../parts.js";
import { weigh } from "../maths.js";

export async function draw(app, lesson) {
  const look = await lesson.look();
  const kind = look.panel.kinds.decoder ? "decoder" : "cross";
  const head = await lesson.head(look, kind);
  const { mask, pads } = app.state;
  const n = head.key.length;
  const blank = head.key[0].map(() => 0);
  const keys = [...head.key, ...Array(pads).fill(blank)];
  const labels = [...head.keys, ...Array(pads).fill("<pad>")];
  const isPad = (at) => at >= n;
  const isFuture = (row, at) => head.causal && at > row && !isPad(at);
  const isHidden = (row, at) => isFuture(row, at) || isPad(at);
  const weights = head.query.map((query, row) => weigh(query, keys,
    { scale: head.scale, canSee: (at) => !mask || !isHidden(row, at) }).weights);
  lesson.table = [["", ...labels], ...weights.map((row, at) => [head.queries[at], ...row])];
  const leaked = (test) => (100 / weights.length * weights.reduce((sum, row, at) =>
    sum + row.reduce((part, value, to) => part + (test(at, to) ? value : 0), 0), 0)).toFixed(1);
  const cell = Math.max(18, Math.min(46, (room(668) - 108) / keys.length));
  const inside = (row, at, x, y) => {
    if (!isHidden(row, at)) return [];
    const [hidden, lines] = [box("hatched", x, y, cell, cell), hatch(x, y, cell)];
    if (mask) return [hidden, svg("path.hatch", { d: lines })];
    return weights[row][at] > 0.005 ? [box("leak", x + 1.5, y + 1.5, cell - 3, cell - 3)] : [];
  };
  return [
    controls(...lesson.headControls(look, kind), lesson.toggle("mask", said("masks_on")),
      lesson.slider("pads", "masks_pads", { max: 6 })),
    plate(grid(said("masks_matrix"), head.queries, labels, weights, { cell, inside }),
      element(mask ? "p.verdict.right" : "p.verdict.wrong",
        said(mask ? "masks_held" : "masks_broken",
          { future: leaked(isFuture), padding: leaked((_, at) => isPad(at)) })),
      note(said("masks_help"))),
  ];
}

function hatch(x, y, size) {
  const lines = [];
  for (let at = 6; at < 2 * size; at += 6) {
    const [from, to] = [Math.max(0, at - size), Math.min(at, size)];
    lines.push(`M${x + from} ${y + at - from}L${x + to} ${y + at - to}`);
  }
  return lines.join("");
}
