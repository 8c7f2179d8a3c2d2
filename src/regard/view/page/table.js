/** The same weights as a real table, made when it is asked for, and as a file for a spreadsheet. */
import { element, said } from "./elements.js";

const written = (view, row, column) =>
  view.canSee(row, column) ? view.weights[row][column].toFixed(3) : "";

export function tableView(words) {
  const table = element("table", {});
  const region = element(
    "div",
    { class: "scroller", tabindex: "0", role: "region", "aria-label": said(words, "table") },
    table,
  );
  const save = element("button", { type: "button", class: "plain" }, said(words, "save"));
  const root = element(
    "details",
    { class: "card" },
    element("summary", {}, said(words, "table")),
    element("p", {}, save),
    region,
  );
  let shown = null;

  function fill() {
    if (!root.open || !shown) return;
    const { view, name } = shown;
    const heads = view.keys.map((key) => element("th", { scope: "col" }, key.label));
    const rows = view.queries.map((query, row) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, query.label),
        ...view.keys.map((_, column) => element("td", {}, written(view, row, column))),
      ),
    );
    table.replaceChildren(
      element("caption", {}, name),
      element("thead", {}, element("tr", {}, element("td", {}), ...heads)),
      element("tbody", {}, ...rows),
    );
  }

  root.addEventListener("toggle", fill);
  save.addEventListener("click", () => {
    const { view, file } = shown;
    const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
    const lines = view.queries.map((query, row) =>
      [quoted(query.label), ...view.keys.map((_, column) => written(view, row, column))].join(","),
    );
    const text = ["", ...view.keys.map((key) => quoted(key.label))].join(",");
    // A spreadsheet knows UTF-8 by the mark at the beginning.
    const blob = new Blob(["\ufeff", [text, ...lines, ""].join("\r\n")], { type: "text/csv" });
    const link = element("a", { href: URL.createObjectURL(blob), download: file });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });

  return {
    root,
    update(view, name, file) {
      shown = { view, name, file };
      fill();
    },
  };
}
