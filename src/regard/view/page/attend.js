/** The page around the panel: two languages, two themes, an address that says what is shown. */
import { keepingFocus } from "./controls.js";
import { said, speak } from "./elements.js";
import { showAttention } from "./panel.js";
import { readerOf } from "./reader.js";
import { loaded } from "./weights.js";

const NUMBERS = ["layer", "head", "row", "column"];
const FLAGS = ["words", "sinks"];

/** The state in the address, laid over the one in the file; numbers count from 1 there. */
function stateOf(start) {
  const state = { row: 0, column: null, ...start };
  const address = new URLSearchParams(location.hash.slice(1));
  if (address.has("kind")) state.kind = address.get("kind");
  for (const name of NUMBERS) {
    const number = Number.parseInt(address.get(name) ?? "", 10);
    if (!Number.isNaN(number)) state[name] = number - 1;
  }
  for (const name of FLAGS) if (address.has(name)) state[name] = address.get(name) === "1";
  return state;
}

function written(state) {
  const address = new URLSearchParams({ kind: state.kind });
  for (const name of NUMBERS) if (state[name] != null) address.set(name, state[name] + 1);
  for (const name of FLAGS) if (state[name]) address.set(name, "1");
  return `#${address}`;
}

/** Shows the page: `texts` is the dictionary of each language. */
export async function start(document, raw, texts) {
  const data = await loaded(raw);
  const state = stateOf(data.start);
  const reader = readerOf(data.language, show);
  const place = (id) => document.getElementById(id);

  function keep() {
    try {
      history.replaceState(null, "", written(state));
    } catch {
      // A page within a page has no address of its own.
    }
  }

  function show() {
    speak(texts[reader.language]);
    keepingFocus(place("chosen"), () => place("chosen").replaceChildren(...reader.controls()));
    document.title = `${data.source} · ${said("title")}`;
    place("name").textContent = said("title");
    place("exact").textContent = said("exact");
    showAttention(place("attend"), data, { state, onchange: keep });
  }

  place("source").textContent = data.source;
  place("target").textContent = data.target;
  show();
}
