/** Step 2: where a token stands is added to it as sines and cosines. */
import { button, slider } from "../controls.js";
import { curves, figure, heat, svg, words } from "../draw.js";
import { card, controls, scroller } from "../parts.js";
import { dot, normals, sinusoids } from "../maths.js";
import { labelsOf, textOf } from "../pieces.js";
import { element } from "../view/elements.js";

const [N, D] = [48, 64];
let table = [[]];
export const rows = () => table;

export async function draw(app, lesson) {
  const look = await lesson.look();
  const wave = sinusoids(N, D);
  const { place } = app.state;
  const products = wave.map((one) => dot(wave[place], one));
  table = [["position", "dot product"], ...products.map((value, at) => [at, value.toFixed(6)])];
  return [
    controls(slider("place", app.said("position"), { min: 0, max: N - 1, value: place },
      (value) => lesson.set({ place: value }))),
    element("div", { class: "pair" }, map(app, wave, place), distance(app, products, place)),
    await shuffled(app, lesson, look),
  ];
}

function map(app, wave, place) {
  const [left, line, width] = [34, 7, 460];
  const height = N * line;
  const drawn = figure(left + width + 4, height + 28, app.said("positions_map"),
    heat(wave, { x: left, y: 2, width, height, theme: app.seen, limit: 1 }),
    svg("rect", { x: left, y: 2 + place * line, width, height: line, class: "chosen-row" }),
    ...[0, 12, 24, 36].map((at) => words(left - 6, 2 + at * line + 8, at, { "text-anchor": "end", class: "tick" })),
    words(left, height + 20, app.said("fast"), { class: "tick" }),
    words(left + width, height + 20, app.said("slow"), { class: "tick", "text-anchor": "end" }));
  return card(app.said("positions_map"), scroller(app.said("positions_map"), drawn),
    element("p", { class: "note" }, app.said("positions_map_help", { d: D })));
}

function distance(app, products, place) {
  const label = app.said("positions_curve", { place });
  const points = products.map((value, at) => [at - place, value]);
  return card(label, scroller(label, curves([{ points }], {
    label, width: 460, height: 300, xName: app.said("distance"), mark: 0,
  })), element("p", { class: "note" }, app.said("positions_curve_help")));
}

async function shuffled(app, lesson, look) {
  const pieces = look.src_pieces.slice(0, -1);
  const mix = () => lesson.set({ shuffle: app.state.shuffle + 1 });
  const parts = [element("p", { class: "quote" }, lesson.text, element("br"), `→ ${look.translation}`)];
  if (app.state.shuffle) {
    const draw = normals(app.state.shuffle);
    const order = pieces.map((piece) => [draw(), piece]).sort(([one], [other]) => one - other);
    const text = textOf(order.map(([, piece]) => piece)).replaceAll(/\s+/g, " ");
    const found = await app.once("/api/v1/translate", { ...lesson.asked, text });
    parts.push(element("div", { class: "line" }, ...labelsOf(order.map(([, piece]) => piece)).map((label) =>
      element("span", { class: "chip still" }, label))),
    element("p", { class: "quote" }, text, element("br"), `→ ${found.translations[0].text}`));
  }
  parts.push(button(app.said("shuffle"), mix, { name: "shuffle", kind: "plain main" }));
  return card(app.said("positions_shuffle"), element("p", {}, app.said("positions_shuffle_help")), ...parts);
}
