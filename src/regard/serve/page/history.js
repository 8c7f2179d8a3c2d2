/** The last translations, kept in this browser and nowhere else. */
import { button, drawer, element, said } from "./parts.js";
import { remember, remembered } from "./view/memory.js";

const MOST = 20;
const LONGEST = 2000;

export function keepTranslation(one) {
  if (one.text.length > LONGEST) return;
  const before = (remembered("history") ?? []).filter((other) =>
    // What was typed on the way to this text is no translation that anybody wanted.
    other.text !== one.text && !one.text.startsWith(other.text));
  remember("history", [one, ...before].slice(0, MOST));
}

export function historyCard(onchoose) {
  const list = element("div");
  const root = drawer(said("history"), said("history_help"), list);
  const forget = () => {
    remember("history", []);
    update();
  };
  function update() {
    const kept = remembered("history") ?? [];
    list.replaceChildren(...(kept.length ? [
      element("ul.others", kept.map((one) => element("li",
        button([element("span", one.text), element("span.note", one.said)], () => onchoose(one),
          { kind: "other" })))),
      button(said("history_clear"), forget),
    ] : [element("p.ghost", said("history_empty"))]));
  }
  update();
  return { root, update };
}
