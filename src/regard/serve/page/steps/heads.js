/** Step 7: every head of every layer, named by what it looks at. */
import { card, controls, element, note, range, said, within } from "../parts.js";
import { entropy } from "../maths.js";
import { painted } from "../view/colours.js";
import { onArrow } from "../view/elements.js";
import { strongest } from "../view/units.js";
import { headOf } from "../view/weights.js";

const LEAST = 0.45; // a share of the weight that deserves a name

const mean = (rows, value) => rows.reduce((sum, row, at) => sum + value(row, at), 0) / rows.length;

/** How much of a head's weight is where a name says; the largest share names the head. */
export function nameOf(weights, kind, isSink) {
  const columns = isSink.length;
  const slant = (columns - 1) / Math.max(1, weights.length - 1);
  const share = (test) => mean(weights, (row, at) =>
    row.reduce((part, value, to) => part + (test(to, at) && !isSink[to] ? value : 0), 0));
  // A decoder is given what was written one step before, so the same column is the word before.
  const places = {
    cross: { diagonal: (to, at) => Math.abs(to - at * slant) <= 1 },
    decoder: { before: (to, at) => to === at },
    encoder: { itself: (to, at) => to === at, before: (to, at) => to === at - 1,
      after: (to, at) => to === at + 1 },
  };
  const tests = { first: (to) => to === 0, ...places[kind] };
  const onSinks = mean(weights, (row) =>
    row.reduce((part, value, to) => part + isSink[to] * value, 0));
  const shares = [["sinks", onSinks], ...Object.entries(tests).map(([name, test]) =>
    [name, share(test)])];
  const [[best, most]] = shares.sort(([, one], [, other]) => other - one);
  if (most >= LEAST) return [best, most];
  const isSpread = mean(weights, entropy) > 0.8 * Math.log2(Math.max(2, columns));
  return [isSpread ? "spread" : "mixed", null];
}

export async function draw(app, lesson) {
  const look = await lesson.look();
  const { kind } = lesson;
  const one = look.panel.kinds[kind];
  const { layer, head, layers, heads } = lesson.place(look, kind);
  const isSink = look.panel.sides[one.keys].pieces.sinks;
  lesson.table = [["layer", "head", "name", "share", "entropy"]];
  const choose = (at, which) =>
    lesson.set({ layer: within(at, layers), head: within(which, heads) });
  const walk = (event) =>
    onArrow(event, (down, right) => choose(layer + down, head + right));
  const grid = element("div.gallery",
    { role: "radiogroup", "aria-label": said("heads"), onkeydown: walk },
    range(layers * heads).map((n) => {
      const [at, which] = [Math.floor(n / heads), n % heads];
      const isOn = at === layer && which === head;
      return thumbnail(lesson, headOf(one, at, which),
        { kind, at, which, isSink, isOn, onclick: () => choose(at, which) });
    }));
  grid.style.setProperty("--heads", heads);
  return [
    controls(lesson.kindMenu(look)),
    card(said(kind), note(said("gallery_help")), grid),
    reading(look, one, layer, head),
  ];
}

function thumbnail(lesson, weights, { kind, at, which, isSink, isOn, onclick }) {
  const [name, share] = nameOf(weights, kind, isSink);
  const bits = mean(weights, entropy);
  lesson.table.push([at + 1, which + 1, name, share ?? "", bits]);
  const habit = said(`head_${name}`);
  const percent = share == null ? "" : said("share", { percent: Math.round(100 * share) });
  return element("button.frame-button", {
    type: "button", role: "radio", "aria-checked": String(isOn), tabindex: isOn ? 0 : -1,
    "data-control": isOn ? "thumbnail" : null, onclick,
    "aria-label": `${said("layer_head", { layer: at + 1, head: which + 1 })}: ${habit} ${percent}`,
  }, painted(weights), element("span.badge", `${at + 1}.${which + 1} ${habit}`),
  element("span.note", percent || said("bits", { bits: bits.toFixed(1) })));
}

function reading(look, one, layer, head) {
  const labels = (side) => look.panel.sides[side].pieces.labels;
  const [queries, keys] = [labels(one.queries), labels(one.keys)];
  const lines = headOf(one, layer, head).map((row, at) =>
    element("li", element("b", queries[at]), " → ",
      strongest(row).map((to) => `${keys[to]} ${row[to].toFixed(2)}`).join(said("and"))));
  const name = said("layer_head", { layer: layer + 1, head: head + 1 });
  return card(said("reading", { head: name }), element("ul.reading", lines));
}
