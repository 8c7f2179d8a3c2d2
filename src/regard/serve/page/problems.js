/** Every failure has its place, its words, and a way on. */
import { button } from "./controls.js";
import { element } from "./view/elements.js";
import { useKey } from "./api.js";

/** A card that says what is wrong; `again` is tried by itself when there is reason to hope. */
export function problemCard(app, problem, again) {
  const own = app.language === "zh" ? problem.message_zh : problem.message;
  const card = element("div", { class: `problem ${problem.kind}`, role: "alert" });
  const name = ["gone", "busy", "locked", "long"].includes(problem.kind) ? problem.kind : "refused";
  card.append(element("strong", {}, app.said(`${name}_title`)));
  const text = element("p", {}, app.said(`${name}_help`));
  card.append(text);
  if (own) card.append(element("p", { class: "note" }, own));
  if (name === "busy") countDown(app, card, problem.wait, again);
  else if (name === "gone") waitForServer(app, card, again);
  else if (name === "locked") card.append(keyForm(app, again));
  else if (again) card.append(button(app.said("try_again"), again));
  return card;
}

function countDown(app, card, seconds, again) {
  const left = element("p", { class: "count", "aria-live": "off" });
  card.append(left);
  let rest = Math.ceil(seconds);
  const tick = () => {
    if (!card.isConnected && rest < Math.ceil(seconds)) return;
    left.textContent = app.said("busy_wait", { seconds: rest });
    if (rest-- > 0) setTimeout(tick, 1000);
    else again?.();
  };
  tick();
}

function waitForServer(app, card, again) {
  card.append(button(app.said("try_again"), () => again?.()));
  const look = async () => {
    if (!card.isConnected) return;
    const isBack = await fetch("/readyz").then((answer) => answer.ok, () => false);
    if (isBack && card.isConnected) again?.();
    else setTimeout(look, 2000);
  };
  setTimeout(look, 2000);
}

function keyForm(app, again) {
  const field = element("input", {
    type: "password", autocomplete: "off", "aria-label": app.said("key_label"), class: "field",
  });
  return element(
    "form",
    {
      class: "row",
      onsubmit: (event) => {
        event.preventDefault();
        useKey(field.value.trim());
        again?.();
      },
    },
    field,
    element("button", { class: "plain" }, app.said("key_use")),
  );
}
