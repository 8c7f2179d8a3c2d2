/** The last translations, kept in this browser and nowhere else. */
import { button } from "./controls.js";
import { remember, remembered } from "./state.js";
import { element } from "./view/elements.js";

const MOST = 20;
const LONGEST = 2000;

export function keepTranslation(one) {
  if (one.text.length > LONGEST) return;
  const before = (remembered("history") ?? []).filter((other) =>
    // What was typed on the way to this text is no translation that anybody wanted.
    other.text !== one.text && !one.text.startsWith(other.text));
  remember("history", [one, ...before].slice(0, MOST));
}

export function historyCard(app, onchoose) {
  const list = element("div", {});
  const root = element("details", { class: "card" },
    element("summary", {}, app.said("history")),
    element("p", { class: "note" }, app.said("history_help")), list);
  function update() {
    const kept = remembered("history") ?? [];
    if (!kept.length) {
      list.replaceChildren(element("p", { class: "ghost" }, app.said("history_empty")));
      return;
    }
    list.replaceChildren(
      element("ul", { class: "others" }, ...kept.map((one) =>
        element("li", {}, button("", () => onchoose(one), { kind: "other" })))),
      button(app.said("history_clear"), () => {
        remember("history", []);
        update();
      }),
    );
    list.querySelectorAll(".other").forEach((line, at) =>
      line.append(element("span", {}, kept[at].text),
        element("span", { class: "note" }, kept[at].said)));
  }
  update();
  return { root, update };
}
