/** Step 2: where a token stands is added to it as sines and cosines. */
import { box, curves, figure, heat, room, words } from "../draw.js";
import { button, card, controls, element, note, pair, plate, said } from "../parts.js";
import { dot, normals, sinusoids } from "../maths.js";
import { isSpecial, labelsOf, textOf } from "../pieces.js";
import { chip } from "../view/sentence.js";

const [N, D, WIDE] = [48, 64, 512]; // the wider, the smoother the curve

export async function draw(app, lesson) {
  const look = await lesson.look();
  const [wave, wide] = [D, WIDE].map((d) => sinusoids(N, d));
  const { place } = app.state;
  const products = wide.map((one) => dot(wide[place], one));
  lesson.table = [["position", "dot product"],
    ...products.map((value, at) => [at, value.toFixed(6)])];
  return [
    controls(lesson.slider("place", "position", { max: N - 1 })),
    pair(map(wave, place), distance(products, place)),
    await shuffled(app, lesson, look),
  ];
}

function map(wave, place) {
  const [left, line, width] = [34, 7, room(494) - 38];
  const height = N * line;
  return plate(figure(left + width + 4, height + 28, said("positions_map"),
    heat(wave, { x: left, y: 2, width, height, limit: 1 }),
    box("chosen-row", left, 2 + place * line, width, line),
    [0, 12, 24, 36].map((at) => words(left - 6, 2 + at * line + 8, at, "tick end")),
    words(left, height + 20, said("fast"), "tick"),
    words(left + width, height + 20, said("slow"), "tick end")),
  note(said("positions_map_help", { d: D })));
}

function distance(products, place) {
  const label = said("positions_curve", { place });
  const points = products.map((value, at) => [at - place, value]);
  return plate(curves([{ points }],
    { label, most: 460, height: 300, xName: said("distance"), mark: 0 }),
  note(said("positions_curve_help", { d: WIDE })));
}

async function shuffled(app, lesson, look) {
  const quote = (text, said) => element("p.quote", text, element("br"), `→ ${said}`);
  const parts = [quote(lesson.text, look.translation)];
  if (app.state.shuffle) {
    const draw = normals(app.state.shuffle);
    const order = look.src_pieces.filter((piece) => !isSpecial(piece)).map((one) => [draw(), one])
      .sort(([one], [other]) => one - other).map(([, piece]) => piece);
    const text = textOf(order).replaceAll(/\s+/g, " ");
    const found = await app.once("/api/v1/translate", { ...lesson.asked, text });
    parts.push(element("div.line.still", labelsOf(order).map((label) => chip(label))),
      quote(text, found.translations[0].text));
  }
  const mix = () => lesson.set({ shuffle: app.state.shuffle + 1 });
  return card(said("positions_shuffle"), element("p", said("positions_shuffle_help")),
    parts, button(said("shuffle"), mix, { name: "shuffle", kind: "plain main" }));
}
