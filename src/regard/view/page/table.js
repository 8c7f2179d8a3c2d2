/** The same weights as a real table, made when it is asked for, and as a file for a spreadsheet. */
import { button } from "./controls.js";
import { element, said } from "./elements.js";
import { saveRows } from "./files.js";

/** A table of rows, the first of which names the columns as its own first cell names the row. */
export function tableOf([heads, ...rows], caption = null) {
  const head = (text, scope) => text === "" ? element("td") : element("th", { scope }, text);
  return element("table",
    caption && element("caption", caption),
    element("thead", element("tr", heads.map((text) => head(text, "col")))),
    element("tbody", rows.map(([name, ...cells]) =>
      element("tr", head(name, "row"), cells.map((cell) => element("td", cell))))));
}

/** What may be wider than the screen: it scrolls by itself, by keys as well. */
export const scroller = (child, label = child.getAttribute("aria-label")) =>
  element("div.scroller", { tabindex: 0, role: "group", "aria-label": label }, child);

export function tableView() {
  const place = element("div");
  const root = element("details.card", { ontoggle: fill },
    element("summary", said("table")),
    element("p", button(said("save"), () => saveRows(shown.file, shown.rows))), place);
  let shown = null;

  function fill() {
    if (!root.open || !shown) return;
    place.replaceChildren(scroller(tableOf(shown.rows, shown.name), said("table")));
  }

  return {
    root,
    update(view, name, file) {
      const written = (weight, row, column) => view.canSee(row, column) ? weight.toFixed(3) : "";
      const rows = [["", ...view.keys.map((key) => key.label)], ...view.queries.map((query, row) =>
        [query.label, ...view.weights[row].map((weight, at) => written(weight, row, at))])];
      shown = { rows, name, file };
      fill();
    },
  };
}
