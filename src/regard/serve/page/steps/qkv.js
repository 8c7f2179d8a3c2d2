/** Step 3: every token asks, is asked, and answers: query, key and value. */
import { figure, LEFT, strips, stripWidth, TALL, words } from "../draw.js";
import { controls, note, numberOf, plate, said } from "../parts.js";
import { weigh } from "../maths.js";

const MORE = 126;

export async function draw(app, lesson) {
  const look = await lesson.look();
  const head = await lesson.head(look);
  const canSee = (at) => !head.causal || at <= head.row;
  const query = head.query[head.row];
  const { scores, weights } = weigh(query, head.key, { scale: head.scale, canSee });
  lesson.table = [["token", "score", "weight"],
    ...head.keys.map((label, at) => [label, scores[at], weights[at]])];
  const most = Math.max(...weights);
  const [name, d] = [head.queries[head.row], query.length];
  const part = (key, labels, vectors, more) => plate(
    strip(said(key, { name }), labels, vectors, more), note(said(`${key}_help`, { d })));
  return [
    controls(...lesson.headControls(look), lesson.rowMenu(head)),
    part("qkv_query", [name], [query]),
    part("qkv_keys", head.keys, head.key, { after: scores.map((score, at) =>
      [numberOf(score), `→ ${weights[at].toFixed(3)}`]) }),
    part("qkv_values", head.keys, head.value, { after: weights.map((weight) =>
      [`× ${weight.toFixed(3)}`]), opacities: weights.map((weight) => 0.1 + 0.9 * weight / most) }),
    part("qkv_output", [said("output")], [mixed(head.value, weights)]),
  ];
}

const mixed = (values, weights) =>
  values[0].map((_, at) => values.reduce((sum, value, row) => sum + weights[row] * value[at], 0));

/** All are equally wide: a dimension stands below itself. */
function strip(title, labels, vectors, { after = [], opacities } = {}) {
  const width = stripWidth(MORE);
  const right = LEFT + width + 12;
  return figure(LEFT + width + MORE, labels.length * TALL + 4, title,
    strips(labels, vectors, width, { opacities }),
    after.flatMap((texts, at) => texts.map((text, n) =>
      words(right + 58 * n, at * TALL + 18, text, "number"))));
}
