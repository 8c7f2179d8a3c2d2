/** The page around the panel: two languages, two themes, an address that says what is shown. */
import { choices, element, said } from "./elements.js";
import { loaded, showAttention } from "./panel.js";

const NUMBERS = ["layer", "head", "row", "column"];
const FLAGS = ["words", "sinks"];

/** What was kept from the last visit; a sandbox may forbid to keep anything. */
function remembered(name) {
  try {
    return localStorage.getItem(`regard-${name}`);
  } catch {
    return null;
  }
}

function remember(name, value) {
  try {
    localStorage.setItem(`regard-${name}`, value);
  } catch {
    // Then it holds until the page is closed.
  }
}

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
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const own = data.language || (navigator.language.startsWith("zh") ? "zh" : "en");
  let language = remembered("language") ?? own;
  let theme = remembered("theme") ?? "auto";
  const root = document.getElementById("attend");
  const chosen = document.getElementById("chosen");

  function keep() {
    try {
      history.replaceState(null, "", written(state));
    } catch {
      // A page within a page has no address of its own.
    }
  }

  function show() {
    const words = texts[language];
    const focused = document.activeElement?.closest?.("[role=radiogroup]")?.dataset.name;
    document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
    document.documentElement.dataset.theme = theme;
    document.title = `${data.source} · ${said(words, "title")}`;
    document.getElementById("name").textContent = said(words, "title");
    document.getElementById("exact").textContent = said(words, "exact");
    chosen.replaceChildren(
      group("language", said(words, "language"), [
        ["zh", texts.zh.language, "zh-CN"],
        ["en", texts.en.language, "en"],
      ]),
      group(
        "theme",
        said(words, "theme"),
        ["auto", "light", "dark"].map((name) => [name, said(words, `theme_${name}`)]),
      ),
    );
    chosen.querySelector(`[data-name="${focused}"] [tabindex="0"]`)?.focus();
    const seen = theme === "auto" ? (dark.matches ? "dark" : "light") : theme;
    showAttention(root, data, { words, theme: seen, state, onchange: keep });
  }

  function group(name, label, options) {
    const current = name === "language" ? language : theme;
    const made = choices(label, options, current, (value) => {
      remember(name, value);
      if (name === "language") language = value;
      else theme = value;
      show();
    });
    made.dataset.name = name;
    return made;
  }

  document.getElementById("source").textContent = data.source;
  document.getElementById("target").textContent = data.target;
  dark.addEventListener("change", show);
  show();
}
