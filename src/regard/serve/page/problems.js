/** Every failure has its place, its words, and a way on. */
import { button, element, note, said } from "./parts.js";
import { Problem, useKey } from "./api.js";

/** A box that says what is wrong, and what can be done. */
export const problemBox = (kind, title, ...children) =>
  element(`div.problem.${kind}`, { role: "alert" }, element("strong", title), ...children);

/** What a Problem looks like; `again` is tried by itself when there is reason to hope. */
export function problemCard(app, problem, again) {
  const own = app.language === "zh" ? problem.message_zh : problem.message;
  const name = ways[problem.kind] ? problem.kind : "refused";
  const card = problemBox(name, said(`${name}_title`),
    element("p", said(`${name}_help`)), own && note(own));
  ways[name](card, again, problem);
  return card;
}

/** Shows what was caught, in its place; a fault that is no Problem is a fault of the page. */
export function showProblem(app, place, problem, again) {
  if (problem.name === "AbortError") return; // somebody wanted it so
  if (!(problem instanceof Problem)) throw problem;
  place.replaceChildren(problemCard(app, problem, again));
}

const ways = {
  busy: countDown,
  gone: waitForServer,
  locked: askForKey,
  long: tryAgain,
  refused: tryAgain,
};

function tryAgain(card, again) {
  card.append(button(said("try_again"), again));
}

function countDown(card, again, { wait }) {
  const left = element("p.count", { "aria-live": "off" });
  card.append(left);
  let rest = Math.ceil(wait);
  const tick = () => {
    if (!card.isConnected && rest < Math.ceil(wait)) return;
    left.textContent = said("busy_wait", { seconds: rest });
    if (rest-- > 0) setTimeout(tick, 1000);
    else again();
  };
  tick();
}

function waitForServer(card, again) {
  tryAgain(card, again);
  const look = async () => {
    if (!card.isConnected) return;
    const isBack = await fetch("/readyz").then((answer) => answer.ok, () => false);
    if (isBack && card.isConnected) again();
    else setTimeout(look, 2000);
  };
  setTimeout(look, 2000);
}

function askForKey(card, again) {
  const field = element("input.field",
    { type: "password", autocomplete: "off", "aria-label": said("key_label") });
  const use = (event) => {
    event.preventDefault();
    useKey(field.value.trim());
    again();
  };
  card.append(element("form.row", { onsubmit: use }, field,
    element("button.plain", said("key_use"))));
}
