/** Both sentences, shaded by one row or one column of weights, and the same in words. */
import { colourAt, css, textOn } from "./colours.js";
import { element, said } from "./elements.js";
import { strongest } from "./units.js";

const WORTH_PRINTING = 0.1;

export function sentenceView({ onhover, onselect }) {
  const sides = {};
  for (const side of ["keys", "queries"]) {
    const title = element("h3", {});
    const line = element("p", { class: "line" });
    sides[side] = { title, line, root: element("div", { class: "side" }, title, line) };
  }
  let shown = null;

  function chip(unit, place, side) {
    const at = () =>
      side === "keys" ? { row: shown.row, column: place, side } : { row: place, column: 0, side };
    return element(
      "span",
      {
        class: "chip",
        onpointerenter: () => onhover(at()),
        onpointerleave: () => onhover(null),
        onclick: () => onselect(at()),
      },
      element("span", { class: "label" }, unit.label),
      element("span", { class: "number", "aria-hidden": "true" }),
    );
  }

  function shade(line, weights, theme) {
    [...line.children].forEach((one, place) => {
      const weight = weights?.[place];
      const colour = weight == null ? null : colourAt(weight, theme);
      one.style.background = colour ? css(colour) : "";
      one.style.color = colour ? textOn(colour) : "";
      one.lastChild.textContent = weight >= WORTH_PRINTING ? weight.toFixed(2) : "";
    });
  }

  return {
    root: element("div", { class: "sentences" }, sides.keys.root, sides.queries.root),
    /** Shades the keys by the row `at`, or the queries by the column, if that is pointed at. */
    update(view, { kind, words, theme, at }) {
      const isNew = shown?.view !== view;
      shown = { view, row: at.row };
      for (const side of ["keys", "queries"]) {
        sides[side].title.textContent = said(words, `${side}_${kind}`);
        if (!isNew) continue;
        sides[side].line.replaceChildren(...view[side].map((unit, n) => chip(unit, n, side)));
      }
      const isColumn = at.side === "keys";
      const column = view.weights.map((row) => row[at.column]);
      shade(sides.keys.line, isColumn ? null : view.weights[at.row], theme);
      shade(sides.queries.line, isColumn ? column : null, theme);
      [...sides.keys.line.children].forEach((one, n) =>
        one.classList.toggle("on", isColumn && n === at.column),
      );
      [...sides.queries.line.children].forEach((one, n) =>
        one.classList.toggle("on", !isColumn && n === at.row),
      );
    },
  };
}

/** Where a row looks, or who looks at a column, as a sentence. */
export function spokenRow(view, { kind, words, at }) {
  const list = (places, units, weights) =>
    places.map((place) => `${units[place].label} ${weights[place].toFixed(2)}`).join(", ");
  if (at.side === "keys") {
    const weights = view.weights.map((row) => row[at.column]);
    const queries = list(strongest(weights), view.queries, weights);
    return said(words, "looked_at", { key: view.keys[at.column].label, queries });
  }
  const weights = view.weights[at.row];
  const query = view.queries[at.row].label;
  const places = strongest(weights);
  if (!places.length) return said(words, "looks_nowhere", { query });
  const keys = list(places, view.keys, weights);
  return said(words, `looks_${kind}`, { step: at.row + 1, query, keys });
}

/** One cell in words: who looks, at what, how much. */
export function spokenCell(view, { words, at }) {
  const [query, key] = [view.queries[at.row].label, view.keys[at.column].label];
  const weight = view.weights[at.row][at.column].toFixed(2);
  return `${query} → ${key} ${view.canSee(at.row, at.column) ? weight : said(words, "masked")}`;
}
