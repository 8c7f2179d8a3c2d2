/** All of one translation's attention: what is chosen, and everything that shows it. */
import { choices, element, said } from "./elements.js";
import { headsView } from "./heads.js";
import { matrixView } from "./matrix.js";
import { sentenceView, spokenCell, spokenRow } from "./sentence.js";
import { tableView } from "./table.js";
import { unitsOf, viewOf } from "./units.js";
import { headOf, unpacked } from "./weights.js";
import { colourAt, css } from "./colours.js";

const KEYS = [
  ["← ↑ → ↓", "key_arrows"],
  ["Home End", "key_ends"],
  ["l", "key_layer"],
  ["h", "key_head"],
  ["k", "key_kind"],
  ["w", "key_words"],
  ["s", "key_sinks"],
  ["?", "key_help"],
];

/** The kinds of attention with their bytes, ready to be shown. */
export async function loaded(data) {
  const kinds = {};
  for (const [name, kind] of Object.entries(data.kinds)) {
    const [rows, columns] = [kind.queries, kind.keys].map((side) => count(data.sides[side]));
    kinds[name] = { ...kind, rows, columns, bytes: await unpacked(kind) };
  }
  return { ...data, kinds };
}

const count = (side) => side.pieces.labels.length;

/** Builds the panel in `root`. `state` is what is chosen; `onchange` hears of every choice. */
export function showAttention(root, data, { words, theme, state, onchange = () => {} }) {
  const kinds = Object.keys(data.kinds);
  let pointed = null;
  let view = null;
  let viewed = "";

  const matrix = matrixView({ label: said(words, "matrix"), onhover: point, onselect: select });
  const sentence = sentenceView({ onhover: point, onselect: select });
  const heads = headsView({ onchoose: (layer, head) => choose({ layer, head }) });
  const table = tableView(words);
  const spoken = element("p", { class: "spoken", "aria-live": "polite" });
  const hidden = element("p", { class: "note", role: "status" });
  const axes = element("p", { class: "note" });
  const controls = element("div", { class: "controls" });
  const title = element("h2", {});
  const step = stepper();
  const help = keyboard();
  const columns = element(
    "div",
    { class: "columns" },
    element("section", { class: "card weights" }, title, matrix.root, legend(), hidden, axes),
    element("section", { class: "card" }, step.root, sentence.root, spoken),
    element(
      "section",
      { class: "card" },
      element("h2", {}, said(words, "heads")),
      element("p", { class: "note" }, said(words, "heads_help")),
      element("div", { class: "scroller" }, heads.root),
    ),
  );
  root.replaceChildren(controls, columns, table.root, help);
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

  /** What is chosen, put right: a kind may have fewer layers, a sentence fewer words. */
  function settle() {
    if (!data.kinds[state.kind]) state.kind = kinds[0];
    const kind = data.kinds[state.kind];
    state.layer = Math.min(Math.max(state.layer ?? kind.layers - 1, 0), kind.layers - 1);
    state.head = Math.min(Math.max(state.head ?? -1, -1), kind.heads - 1);
    return kind;
  }

  function update() {
    const kind = settle();
    const wanted = JSON.stringify([state.kind, state.layer, state.head, state.words, state.sinks]);
    if (wanted !== viewed) {
      const cut = state.words ? "words" : "pieces";
      view = viewOf(
        headOf(kind, state.layer, state.head),
        kind.columns,
        unitsOf(data.sides[kind.queries][cut]),
        unitsOf(data.sides[kind.keys][cut]),
        { isCausal: kind.causal, hidesSinks: state.sinks },
      );
      viewed = wanted;
      pointed = null;
      drawControls(kind);
    }
    heads.update(kind, { words, theme, layer: state.layer, head: state.head });
    refresh();
  }

  function refresh() {
    const at = pointed ?? chosen();
    const shown = { kind: state.kind, words, theme, at };
    matrix.update(view, { ...shown, spoken: spokenCell(view, shown) });
    sentence.update(view, shown);
    step.update(at.row);
    const sentenceSaid = spokenRow(view, shown);
    if (spoken.textContent !== sentenceSaid) spoken.textContent = sentenceSaid;
  }

  /** The cell that was chosen; a row chosen by itself shows where it looks most. */
  function chosen() {
    const row = placeOf(view.queries, state.row);
    const weights = view.weights[row];
    const most = weights.indexOf(Math.max(...weights));
    return { row, column: state.column == null ? most : placeOf(view.keys, state.column) };
  }

  /** The unit that holds a piece, or the nearest that is shown. */
  function placeOf(units, piece) {
    const place = units.findIndex((unit) => piece < unit.start + unit.size);
    return place < 0 ? units.length - 1 : place;
  }

  function drawControls(kind) {
    const { layer, head } = { layer: state.layer + 1, head: state.head + 1 };
    const range = (length) => Array.from({ length }, (_, n) => [n, String(n + 1)]);
    const focused = document.activeElement?.closest?.("[data-control]")?.dataset.control;
    const names = kinds.map((name) => [name, said(words, `${name}_short`)]);
    controls.replaceChildren(
      control(
        "kind",
        choices(said(words, "kind"), names, state.kind, (name) => choose({ kind: name })),
      ),
      control("layer", menu("layer", range(kind.layers), state.layer, "layer")),
      control(
        "head",
        menu("head", [[-1, said(words, "mean")], ...range(kind.heads)], state.head, "head"),
      ),
      control("words", toggle("words", "in_words")),
      control("sinks", toggle("sinks", "hide_sinks")),
    );
    const which = head
      ? said(words, "head_of", { head, heads: kind.heads })
      : said(words, "mean_of", { heads: kind.heads });
    const where = said(words, "layer_of", { layer, layers: kind.layers });
    title.textContent = [said(words, state.kind), where, which].join(said(words, "comma"));
    axes.textContent = said(words, `${state.kind}_axes`);
    hidden.textContent = hiddenSaid();
    table.update(view, title.textContent, `${state.kind}-${layer}-${head || "mean"}.csv`);
    const again = focused && controls.querySelector(`[data-control="${focused}"]`);
    again?.querySelector('select, input, [tabindex="0"]')?.focus();
  }

  function control(name, ...children) {
    return element("div", { "data-control": name, class: "control" }, ...children);
  }

  function menu(name, options, chosen, changed) {
    const list = element("select", {
      "aria-label": said(words, name),
      onchange: (event) => choose({ [changed]: Number(event.target.value) }),
    });
    for (const [value, text] of options) {
      list.append(element("option", { value, selected: value === chosen }, text));
    }
    return element("label", { class: "menu" }, element("span", {}, said(words, name)), list);
  }

  function toggle(name, text) {
    const box = element("input", {
      type: "checkbox",
      checked: state[name],
      onchange: (event) => choose({ [name]: event.target.checked }),
    });
    const title = said(words, `${text}_help`);
    return element("label", { class: "toggle", title }, box, said(words, text));
  }

  function hiddenSaid() {
    if (!view.hidden.length) return "";
    const share = (part) => said(words, "share", { percent: Math.round(100 * part) });
    const whole = view.hidden.reduce((sum, [, part]) => sum + part, 0);
    const sinks = view.hidden.map(([label, part]) =>
      view.hidden.length === 1 ? label : said(words, "sink", { label, share: share(part) }),
    );
    return said(words, "hidden", { share: share(whole), sinks: sinks.join(said(words, "and")) });
  }

  function stepper() {
    const go = (row) => select({ row, column: 0, side: "queries" });
    const slider = element("input", {
      type: "range",
      min: 1,
      "aria-label": said(words, "step"),
      oninput: (event) => go(Number(event.target.value) - 1),
    });
    const button = (name, sign, by) =>
      element(
        "button",
        {
          type: "button",
          class: "plain",
          "aria-label": said(words, name),
          onclick: () => go(Math.min(Math.max(Number(slider.value) - 1 + by, 0), slider.max - 1)),
        },
        sign,
      );
    const number = element("output", { class: "number" });
    return {
      root: element(
        "div",
        { class: "stepper" },
        number,
        button("previous", "‹", -1),
        slider,
        button("next", "›", 1),
      ),
      update(row) {
        slider.max = view.queries.length;
        slider.value = row + 1;
        slider.setAttribute("aria-valuetext", `${row + 1}, ${view.queries[row].label}`);
        const values = { place: row + 1, places: view.queries.length };
        number.textContent = said(words, `place_${state.kind}`, values);
      },
    };
  }

  function legend() {
    const stops = Array.from({ length: 17 }, (_, n) => css(colourAt(n / 16, theme)));
    const bar = element("span", { class: "bar" });
    bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    return element("p", { class: "legend" }, `${said(words, "weight")} 0`, bar, "1");
  }

  function keyboard() {
    const list = element("dl", {});
    for (const [key, meaning] of KEYS) {
      const pressed = key.split(" ").flatMap((one) => [element("kbd", {}, one), " "]);
      const [term, text] = [element("dt", {}, ...pressed), element("dd", {}, said(words, meaning))];
      list.append(element("div", {}, term, text));
    }
    const summary = element("summary", {}, said(words, "keyboard"));
    return element("details", { class: "card" }, summary, list);
  }

  function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isGrid = event.target === matrix.grid;
    const isTyping = event.target.matches("select, input:not([type=checkbox])");
    const moves = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      Home: [0, -view.keys.length],
      End: [0, view.keys.length],
    };
    if (isGrid && moves[event.key]) walk(moves[event.key]);
    else if (isTyping || !letter(event.key)) return;
    event.preventDefault();
  }

  function walk([down, right]) {
    const within = (place, by, units) => Math.min(Math.max(place + by, 0), units.length - 1);
    const { row, column } = chosen();
    select({ row: within(row, down, view.queries), column: within(column, right, view.keys) });
  }

  function letter(key) {
    const kind = data.kinds[state.kind];
    const around = (value, by, length) => (value + by + length) % length;
    const by = key === key.toLowerCase() ? 1 : -1;
    switch (key.toLowerCase()) {
      case "l":
        choose({ layer: around(state.layer, by, kind.layers) });
        return true;
      case "h":
        choose({ head: around(state.head + 1, by, kind.heads + 1) - 1 });
        return true;
      case "k":
        choose({ kind: kinds[around(kinds.indexOf(state.kind), by, kinds.length)] });
        return true;
      case "w":
        choose({ words: !state.words });
        return true;
      case "s":
        choose({ sinks: !state.sinks });
        return true;
      case "?":
        help.open = !help.open;
        if (help.open) help.scrollIntoView({ block: "nearest" });
        return true;
      default:
        return false;
    }
  }
}
