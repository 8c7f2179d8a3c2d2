/** Both sentences, shaded by one row or one column of weights, and the same in words. */
import { colourAt, css, textOn } from "./colours.js";
import { element, said } from "./elements.js";
import { strongest } from "./units.js";

const WORTH_PRINTING = 0.1;
const SIDES = ["keys", "queries"];

/** A token in a box, with a number below it. */
export const chip = (label, number = "", attributes = {}) =>
  element("span.chip", attributes, element("span.label", label),
    element("span.number", { "aria-hidden": "true" }, number));

/** Colours a chip by its weight, or not at all. */
export function shade(one, weight) {
  const colour = weight == null ? null : colourAt(weight);
  one.style.background = colour ? css(colour) : "";
  one.style.color = colour ? textOn(colour) : "";
  return one;
}

export function sentenceView({ onhover, onselect }) {
  const parts = SIDES.map(() => [element("h3"), element("p.line")]);
  let shown = null;

  function chipOf(unit, place, side) {
    const at = () =>
      side === "keys" ? { row: shown.row, column: place, side } : { row: place, column: 0, side };
    return chip(unit.label, "", {
      onpointerenter: () => onhover(at()),
      onpointerleave: () => onhover(null),
      onclick: () => onselect(at()),
    });
  }

  return {
    root: element("div.sentences", parts.map((side) => element("div.side", side))),
    /** Shades the keys by the row `at`, or the queries by the column, if that is pointed at. */
    update(view, { kind, at }) {
      const isNew = shown?.view !== view;
      shown = { view, row: at.row };
      const isColumn = at.side === "keys";
      SIDES.forEach((side, n) => {
        const [title, line] = parts[n];
        title.textContent = said(`${side}_${kind}`);
        if (isNew) line.replaceChildren(...view[side].map((unit, at) => chipOf(unit, at, side)));
        const isPointed = isColumn === (side === "keys"); // the other side is shaded
        const weights = isColumn ? view.weights.map((row) => row[at.column]) : view.weights[at.row];
        [...line.children].forEach((one, place) => {
          const weight = isPointed ? null : weights[place];
          shade(one, weight);
          one.lastChild.textContent = weight >= WORTH_PRINTING ? weight.toFixed(2) : "";
          one.classList.toggle("on", isPointed && place === (isColumn ? at.column : at.row));
        });
      });
    },
  };
}

/** Where a row looks, or who looks at a column, as a sentence. */
export function spokenRow(view, { kind, at }) {
  const list = (units, weights) => strongest(weights)
    .map((place) => `${units[place].label} ${weights[place].toFixed(2)}`).join(said("and"));
  if (at.side === "keys") {
    const queries = list(view.queries, view.weights.map((row) => row[at.column]));
    return said("looked_at", { key: view.keys[at.column].label, queries });
  }
  const query = view.queries[at.row].label;
  const keys = list(view.keys, view.weights[at.row]);
  if (!keys) return said("looks_nowhere", { query });
  return said(`looks_${kind}`, { step: at.row + 1, query, keys });
}

/** One cell in words: who looks, at what, how much. */
export function spokenCell(view, { at }) {
  const [query, key] = [view.queries[at.row].label, view.keys[at.column].label];
  const weight = view.weights[at.row][at.column].toFixed(2);
  return `${query} → ${key} ${view.canSee(at.row, at.column) ? weight : said("masked")}`;
}
