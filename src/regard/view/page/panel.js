/** All of one translation's attention: what is chosen, and everything that shows it. */
import { button, choices, keepingFocus, menu, toggle } from "./controls.js";
import { element, onArrow, range, said, within } from "./elements.js";
import { headsView } from "./heads.js";
import { matrixView } from "./matrix.js";
import { sentenceView, spokenCell, spokenRow } from "./sentence.js";
import { tableView } from "./table.js";
import { placeOf, unitsOf, viewOf } from "./units.js";
import { headOf } from "./weights.js";
import { colourAt, css } from "./colours.js";

const KEYS = [
  ["← ↑ → ↓", "key_arrows"], ["Home End", "key_ends"], ["l", "key_layer"], ["h", "key_head"],
  ["k", "key_kind"], ["w", "key_words"], ["s", "key_sinks"], ["?", "key_help"],
];

/** Weights, rows and columns as they are chosen; layer and head are put right. */
export function chosenView(data, state) {
  const kind = data.kinds[state.kind];
  state.layer = within(state.layer ?? kind.layers - 1, kind.layers);
  state.head = within((state.head ?? -1) + 1, kind.heads + 1) - 1;
  const [queries, keys] = [kind.queries, kind.keys].map((side) =>
    unitsOf(data.sides[side][state.words ? "words" : "pieces"]));
  return viewOf(headOf(kind, state.layer, state.head), queries, keys,
    { isCausal: kind.causal, hidesSinks: state.sinks });
}

/** Builds the panel in `root`. `state` is what is chosen; `onchange` hears of every choice. */
export function showAttention(root, data, { state, onchange = () => {} }) {
  const kinds = Object.keys(data.kinds);
  let [pointed, view, viewed] = [null, null, ""];

  const matrix = matrixView({ label: said("matrix"), onhover: point, onselect: select });
  const sentence = sentenceView({ onhover: point, onselect: select });
  const heads = headsView({ onchoose: (layer, head) => choose({ layer, head }) });
  const table = tableView();
  const spoken = element("p.spoken", { "aria-live": "polite" });
  const hidden = element("p.note", { role: "status" });
  const axes = element("p.note");
  const controls = element("div.controls");
  const title = element("h2");
  const step = stepper();
  const help = keyboard();
  root.replaceChildren(controls, element("div.columns",
    element("section.card.weights", title, matrix.root, legend(), hidden, axes),
    element("section.card", step.root, sentence.root, spoken),
    element("section.card", element("h2", said("heads")), element("p.note", said("heads_help")),
      element("div.scroller", heads.root))), table.root, help);
  root.onkeydown = pressed;
  update();

  function choose(changes) {
    const isOther = changes.kind && changes.kind !== state.kind;
    Object.assign(state, changes, isOther ? { row: 0, column: null, layer: null } : {});
    update();
    onchange(state);
  }

  function point(place) {
    pointed = place;
    refresh();
  }

  function select({ row, column, side }) {
    pointed = null;
    const isRow = side === "queries";
    choose({ row: view.queries[row].start, column: isRow ? null : view.keys[column].start });
  }

  function update() {
    if (!data.kinds[state.kind]) state.kind = kinds[0];
    const wanted = () =>
      JSON.stringify([state.kind, state.layer, state.head, state.words, state.sinks]);
    const kind = data.kinds[state.kind];
    if (wanted() !== viewed) {
      view = chosenView(data, state);
      viewed = wanted();
      pointed = null;
      keepingFocus(controls, () => drawControls(kind));
    }
    heads.update(kind, { layer: state.layer, head: state.head });
    refresh();
  }

  function refresh() {
    const at = pointed ?? chosen();
    const shown = { kind: state.kind, at };
    matrix.update(view, { ...shown, spoken: spokenCell(view, shown) });
    sentence.update(view, shown);
    step.update(at.row);
    const text = spokenRow(view, shown);
    if (spoken.textContent !== text) spoken.textContent = text;
  }

  /** The cell that was chosen; a row chosen by itself shows where it looks most. */
  function chosen() {
    const row = placeOf(view.queries, state.row);
    const weights = view.weights[row];
    const most = weights.indexOf(Math.max(...weights));
    return { row, column: state.column == null ? most : placeOf(view.keys, state.column) };
  }

  function drawControls({ layers, heads }) {
    const [layer, head] = [state.layer + 1, state.head + 1];
    const numbers = (n) => range(n).map((at) => [at, at + 1]);
    const change = (name) => (value) => choose({ [name]: value });
    const names = kinds.map((name) => [name, said(`${name}_short`)]);
    controls.replaceChildren(
      choices("kind", said("kind"), names, state.kind, change("kind")),
      menu("layer", said("layer"), numbers(layers), state.layer, change("layer")),
      menu("head", said("head"), [[-1, said("mean")], ...numbers(heads)], state.head,
        change("head")),
      ...[["words", "in_words"], ["sinks", "hide_sinks"]].map(([name, text]) =>
        toggle(name, said(text), state[name], change(name), { title: said(`${text}_help`) })));
    const which = head ? said("head_of", { head, heads }) : said("mean_of", { heads });
    title.textContent = [said(state.kind), said("layer_of", { layer, layers }), which]
      .join(said("comma"));
    axes.textContent = said(`${state.kind}_axes`);
    hidden.textContent = hiddenSaid();
    table.update(view, title.textContent, `${state.kind}-${layer}-${head || "mean"}.csv`);
  }

  function hiddenSaid() {
    if (!view.hidden.length) return "";
    const share = (part) => said("share", { percent: Math.round(100 * part) });
    const whole = view.hidden.reduce((sum, [, part]) => sum + part, 0);
    const sinks = view.hidden.map(([label, part]) =>
      view.hidden.length === 1 ? label : said("sink", { label, share: share(part) }));
    return said("hidden", { share: share(whole), sinks: sinks.join(said("and")) });
  }

  function stepper() {
    const go = (row) => select({ row: within(row, view.queries.length), side: "queries" });
    const slider = element("input", { type: "range", min: 1, "aria-label": said("step"),
      oninput: () => go(Number(slider.value) - 1) });
    const by = (name, sign, step) =>
      button(sign, () => go(Number(slider.value) - 1 + step), { "aria-label": said(name) });
    const number = element("output.number");
    return {
      root: element("div.stepper", number, by("previous", "‹", -1), slider, by("next", "›", 1)),
      update(row) {
        const values = { place: row + 1, places: view.queries.length };
        slider.max = values.places;
        slider.value = values.place;
        slider.setAttribute("aria-valuetext", `${values.place}, ${view.queries[row].label}`);
        number.textContent = said(`place_${state.kind}`, values);
      },
    };
  }

  function legend() {
    const stops = range(17).map((n) => css(colourAt(n / 16)));
    const bar = element("span.bar");
    bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    return element("p.legend", `${said("weight")} 0`, bar, "1");
  }

  function keyboard() {
    const lines = KEYS.map(([keys, meaning]) => element("div",
      element("dt", keys.split(" ").flatMap((key) => [element("kbd", key), " "])),
      element("dd", said(meaning))));
    return element("details.card", element("summary", said("keyboard")), element("dl", lines));
  }

  function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === matrix.grid) {
      onArrow(event, walk);
      const end = { Home: -1, End: 1 }[event.key];
      if (end) {
        event.preventDefault();
        walk(0, end * view.keys.length);
      }
    }
    const isTyping = event.target.matches("select, input:not([type=checkbox])");
    if (!isTyping && letter(event.key)) event.preventDefault();
  }

  function walk(down, right) {
    const { row, column } = chosen();
    select({ row: within(row + down, view.queries.length),
      column: within(column + right, view.keys.length) });
  }

  function letter(key) {
    const { layers, heads } = data.kinds[state.kind];
    const by = key === key.toLowerCase() ? 1 : -1;
    const around = (value, length) => (value + by + length) % length;
    const acts = {
      l: () => choose({ layer: around(state.layer, layers) }),
      h: () => choose({ head: around(state.head + 1, heads + 1) - 1 }),
      k: () => choose({ kind: kinds[around(kinds.indexOf(state.kind), kinds.length)] }),
      w: () => choose({ words: !state.words }),
      s: () => choose({ sinks: !state.sinks }),
      "?": () => {
        help.open = !help.open;
        if (help.open) help.scrollIntoView({ block: "nearest" });
      },
    };
    const act = acts[key.toLowerCase()];
    act?.();
    return Boolean(act);
  }
}
