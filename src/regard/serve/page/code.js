/** What is seen, as the commands that give the same. */
import { button, choices, drawer, element, keepingFocus, said } from "./parts.js";

const python = (text) => JSON.stringify(text); // a string of JSON is one of Python, too
const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

const isBundled = (model) => model === "bundled"; // comes along, and needs no name

const table = (terms) =>
  `{${Object.entries(terms).map((pair) => pair.map(python).join(": ")).join(", ")}}`;

function inPython({ text, from, to, terms, nbest, model }) {
  const more = [
    from && `src_lang=${python(from)}`, to && `tgt_lang=${python(to)}`,
    nbest && `nbest=${nbest}`, terms && `terms=${table(terms)}`,
  ].filter(Boolean);
  return [
    "import regard", "",
    isBundled(model) ? "translator = regard.load()"
      : `translator = regard.load(${python(model)})  # the model's directory`,
    `result = translator.translate(${[python(text), ...more].join(", ")})`,
    "print(result.text)",
  ].join("\n");
}

function inCurl({ text, from, to, terms, nbest, model }) {
  const body = { text, from, to, nbest, terms, model }; // JSON has no place for what is undefined
  return [
    `curl ${location.origin}/api/v1/translate \\`,
    "  -H 'content-type: application/json' \\",
    `  -d ${shell(JSON.stringify(body))}`,
  ].join("\n");
}

function inShell({ text, from, to, nbest, model }) {
  const more = [!isBundled(model) && `--model ${shell(model)}`, from && `--from ${from}`,
    to && `--to ${to}`, nbest && `--nbest ${nbest}`];
  return ["regard translate", shell(text), ...more.filter(Boolean)].join(" ");
}

const WRITERS = { Python: inPython, curl: inCurl, regard: inShell };
const NAMES = Object.keys(WRITERS).map((name) => [name, name]);

export function codeCard(app, seen) {
  let kind = "Python";
  const code = element("pre.code", { tabindex: 0, "aria-label": said("code") });
  const chosen = element("div");
  const copy = button(said("copy"), () =>
    navigator.clipboard?.writeText(code.textContent).catch(() => {}));
  const root = drawer(said("code"), null, element("div.row", chosen, copy), code);
  const choose = (value) => {
    kind = value;
    update();
  };
  function update() {
    const { text, answer, terms } = seen();
    keepingFocus(chosen, () =>
      chosen.replaceChildren(choices("code", said("code"), NAMES, kind, choose)));
    const n = answer?.alternatives.length ?? 1;
    code.textContent = WRITERS[kind]({
      text: text.slice(0, 2000), terms: Object.keys(terms).length ? terms : undefined,
      nbest: n > 1 ? n : undefined, from: answer?.from || app.state.from || undefined,
      to: answer?.to || app.state.to || undefined, model: answer?.model ?? app.model.name,
    });
  }
  root.addEventListener("toggle", update);
  update();
  return { root, update };
}
