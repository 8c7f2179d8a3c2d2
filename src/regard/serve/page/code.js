/** What is seen, as the commands that give the same. */
import { button } from "./controls.js";
import { choices, element } from "./view/elements.js";

const python = (text) => JSON.stringify(text); // a string of JSON is one of Python, too
const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

const table = (terms) =>
  `{${Object.entries(terms).map((pair) => pair.map(python).join(": ")).join(", ")}}`;

function inPython({ text, from, to, terms, nbest, model }) {
  const more = [
    from && `src_lang=${python(from)}`, to && `tgt_lang=${python(to)}`,
    nbest > 1 && `nbest=${nbest}`, Object.keys(terms).length && `terms=${table(terms)}`,
  ].filter(Boolean);
  return [
    "import regard", "",
    `translator = regard.load(${python(model)})  # the model's directory`,
    `result = translator.translate(${[python(text), ...more].join(", ")})`,
    "print(result.text)",
  ].join("\n");
}

function inCurl({ text, from, to, terms, nbest }) {
  const body = { text, ...(from && { from }), ...(to && { to }), ...(nbest > 1 && { nbest }),
    ...(Object.keys(terms).length && { terms }) };
  return [
    `curl ${location.origin}/api/v1/translate \\`,
    "  -H 'content-type: application/json' \\",
    `  -d ${shell(JSON.stringify(body))}`,
  ].join("\n");
}

function inShell({ text, from, to, nbest, model }) {
  const more = [from && `--from ${from}`, to && `--to ${to}`, nbest > 1 && `--nbest ${nbest}`];
  return ["regard translate", shell(text), `--model ${shell(model)}`, ...more.filter(Boolean)].join(" ");
}

const WRITERS = { python: inPython, curl: inCurl, shell: inShell };
const NAMES = [["python", "Python"], ["curl", "curl"], ["shell", "regard"]];

export function codeCard(app, seen) {
  let kind = "python";
  const code = element("pre", { tabindex: "0", class: "code", "aria-label": app.said("code") });
  const chosen = element("div", {});
  const copy = button(app.said("copy"), async () => {
    await navigator.clipboard?.writeText(code.textContent).catch(() => {});
  });
  const root = element("details", { class: "card" }, element("summary", {}, app.said("code")),
    element("div", { class: "row" }, chosen, copy), code);
  function update() {
    const { text, answer, terms } = seen();
    chosen.replaceChildren(choices(app.said("code"), NAMES, kind, (value) => {
      kind = value;
      update();
      chosen.querySelector('[tabindex="0"]').focus();
    }));
    code.textContent = WRITERS[kind]({
      text: text.slice(0, 2000), terms, nbest: answer?.alternatives.length ?? 1,
      from: answer?.from ?? app.state.from, to: answer?.to ?? app.state.to,
      model: answer?.model ?? app.model.name,
    });
  }
  root.addEventListener("toggle", update);
  update();
  return { root, update };
}
