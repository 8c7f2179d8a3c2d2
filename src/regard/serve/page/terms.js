/** Words that must be called so: kept here, sent with every text. */
import { button } from "./controls.js";
import { remember, remembered } from "./state.js";
import { element } from "./view/elements.js";

/** Only the terms that are complete. */
export function termsOf() {
  const rows = remembered("terms") ?? [];
  return Object.fromEntries(rows.filter(([from, to]) => from.trim() && to.trim()));
}

export function termsCard(app, onchange) {
  let rows = remembered("terms") ?? [];
  const list = element("div", { class: "terms" });
  const changed = () => {
    remember("terms", rows);
    onchange();
  };
  const field = (row, side, label) => {
    const made = element("input", {
      class: "field", "aria-label": `${label} ${row + 1}`, maxlength: 100, placeholder: label,
      onchange: (event) => {
        rows[row][side] = event.target.value;
        changed();
      },
    });
    made.value = rows[row][side];
    return made;
  };
  function draw() {
    list.replaceChildren(
      ...rows.map((_, row) =>
        element("div", { class: "row" }, field(row, 0, app.said("term_source")), "→",
          field(row, 1, app.said("term_target")),
          button("×", () => {
            rows = rows.filter((_, other) => other !== row);
            draw();
            changed();
          }, { "aria-label": app.said("term_remove", { number: row + 1 }) }))),
      button(app.said("term_add"), () => {
        rows.push(["", ""]);
        draw();
        list.querySelector(".row:last-of-type input")?.focus();
      }),
    );
  }
  draw();
  return element("details", { class: "card", open: rows.length > 0 },
    element("summary", {}, app.said("terms")),
    element("p", { class: "note" }, app.said("terms_help")), list);
}
