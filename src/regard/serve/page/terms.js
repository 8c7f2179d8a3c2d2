/** Words that must be called so: kept here, sent with every text. */
import { button, drawer, element, said } from "./parts.js";
import { remember, remembered } from "./view/memory.js";

/** Only the terms that are complete. */
export function termsOf() {
  const rows = remembered("terms") ?? [];
  return Object.fromEntries(rows.filter(([from, to]) => from.trim() && to.trim()));
}

export function termsCard(onchange) {
  let rows = remembered("terms") ?? [];
  const list = element("div.terms");
  const changed = () => {
    remember("terms", rows);
    onchange();
  };
  const field = (row, side, label) => {
    const made = element("input.field", {
      "aria-label": `${label} ${row + 1}`, maxlength: 100, placeholder: label,
      onchange: () => {
        rows[row][side] = made.value;
        changed();
      },
    });
    made.value = rows[row][side];
    return made;
  };
  function draw() {
    list.replaceChildren(
      ...rows.map((_, row) =>
        element("div.row", field(row, 0, said("term_source")), "→",
          field(row, 1, said("term_target")),
          button("×", () => {
            rows = rows.filter((_, other) => other !== row);
            draw();
            changed();
          }, { "aria-label": said("term_remove", { number: row + 1 }) }))),
      button(said("term_add"), () => {
        rows.push(["", ""]);
        draw();
        list.querySelector(".row:last-of-type input")?.focus();
      }),
    );
  }
  draw();
  const root = drawer(said("terms"), said("terms_help"), list);
  root.open = rows.length > 0;
  return root;
}
