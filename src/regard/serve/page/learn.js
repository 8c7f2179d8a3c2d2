/** Learn: ten steps, one idea each, all about the same sentence and the same choices. */
import { Problem, rowsOf } from "./api.js";
import { button, keepingFocus, menu } from "./controls.js";
import { exportCard } from "./export.js";
import { labelsOf, sideOf } from "./pieces.js";
import { problemCard } from "./problems.js";
import { element } from "./view/elements.js";
import { loaded } from "./view/panel.js";

/** Each step is a file of steps/, loaded when it is first shown, and has a page of the guide. */
export const STEPS = [
  ["tokens", "model"], ["positions", "attention"], ["qkv", "attention"],
  ["arithmetic", "attention"], ["scoring", "attention"], ["masks", "attention"],
  ["heads", "attention"], ["cross", "attend"], ["beam", "translating"], ["occlusion", "attend"],
];
const SIDES = { cross: ["tgt", "src"], encoder: ["src", "src"], decoder: ["tgt", "given"] };

/** The lesson: the sentence, what was found of it, and what a step asks for. */
class Lesson {
  constructor(app, redraw) {
    Object.assign(this, { app, redraw });
  }

  get text() {
    const first = this.app.directions[0]?.from ?? "zh";
    const from = this.app.state.from || first;
    return this.app.state.text.trim()
      || this.app.said(from.startsWith("zh") ? "lesson_zh" : "lesson_en");
  }

  get asked() {
    return { text: this.text, ...this.app.asking };
  }

  set(changes) {
    this.app.set(changes);
    this.redraw();
  }

  /** All weights of the translation, as the panel takes them. */
  async look() {
    const found = await this.app.once("/api/v1/attend", this.asked);
    if (!found.panel) {
      const sides = {
        src: sideOf(found.src_pieces), tgt: sideOf(found.tgt_pieces),
        given: sideOf(["<s>", ...found.tgt_pieces.slice(0, -1)]),
      };
      const kinds = {};
      for (const [kind, one] of Object.entries(found.weights)) {
        if (!one) continue;
        const [queries, keys] = SIDES[kind];
        const [layers, heads] = one.shape;
        kinds[kind] = { layers, heads, queries, keys, causal: kind === "decoder",
          deflated: false, weights: one.uint8 };
      }
      found.panel = await loaded({ source: this.text, target: found.translation, sides, kinds });
    }
    return found;
  }

  /** Layer and head put right for a kind; a single head, for arithmetic has no mean. */
  place(look, kind) {
    const { layers, heads } = look.panel.kinds[kind];
    const { layer, head } = this.app.state;
    return {
      kind, layer: Math.min(Math.max(layer ?? layers - 1, 0), layers - 1),
      head: Math.min(Math.max(head, 0), heads - 1), layers, heads,
    };
  }

  get kind() {
    const { kind } = this.app.state;
    return SIDES[kind] ? kind : "cross";
  }

  /** One head's numbers: queries, keys, values and weights, row by row, and its tokens. */
  async head(look, kind = this.kind) {
    const { layer, head } = this.place(look, kind);
    const found = await this.app.once("/api/v1/attend",
      { ...this.asked, translation: look.translation, kind, layer, head, vectors: true });
    const given = labelsOf(["<s>", ...look.tgt_pieces.slice(0, -1)]);
    const sides = { src: labelsOf(look.src_pieces), tgt: labelsOf(look.tgt_pieces), given };
    const [queries, keys] = SIDES[kind];
    const [query, key, value, weights] = [found.query, found.key, found.value, found.weights]
      .map(rowsOf);
    const { row, column } = this.app.state;
    const at = Math.min(Math.max(row, 0), query.length - 1);
    const most = weights[at].indexOf(Math.max(...weights[at]));
    return {
      ...found, layer, head, query, key, value, weights, queries: sides[queries], keys: sides[keys],
      row: at, column: column == null ? most : Math.min(Math.max(column, 0), key.length - 1),
    };
  }

  /** Menus for kind, layer and head. */
  headControls(look, { kinds = Object.keys(look.panel.kinds), kind = this.kind } = {}) {
    const { app } = this;
    const { layer, head, layers, heads } = this.place(look, kind);
    const range = (length) => Array.from({ length }, (_, n) => [n, String(n + 1)]);
    const parts = [
      menu("layer", app.said("layer"), range(layers), layer, (value) => this.set({ layer: value })),
      menu("head", app.said("head"), range(heads), head, (value) => this.set({ head: value })),
    ];
    if (kinds.length > 1) {
      const names = kinds.map((one) => [one, app.said(one)]);
      parts.unshift(menu("kind", app.said("kind"), names, kind, (value) =>
        this.set({ kind: value, row: 0, column: null })));
    }
    return parts;
  }

  rowMenu(head, name = "query_of") {
    const options = head.queries.map((label, at) => [at, `${at + 1} · ${label}`]);
    return menu("row", this.app.said(name), options, head.row, (row) =>
      this.set({ row, column: null }));
  }

  columnMenu(head) {
    const options = head.keys.map((label, at) => [at, `${at + 1} · ${label}`]);
    return menu("column", this.app.said("key_of"), options, head.column, (column) =>
      this.set({ column }));
  }
}

export function showLearn(root, app) {
  let [turn, shown] = [0, null];
  const body = element("div", { class: "step-body" });
  const lesson = new Lesson(app, () => keepingFocus(body, draw));
  const list = element("ol", { class: "steps" });
  const nav = element("nav", { "aria-label": app.said("steps") }, list);
  const article = element("article", { class: "step", "aria-live": "off" });
  root.replaceChildren(element("h1", { class: "hidden" }, app.said("learn_title")), sentenceBar(),
    element("div", { class: "course" }, nav, article));
  go(app.state.step, false);

  function sentenceBar() {
    const field = element("input", { class: "field", id: "lesson-text", maxlength: 300, dir: "auto" });
    field.value = lesson.text;
    const take = (event) => {
      event.preventDefault();
      lesson.set({ text: field.value.trim(), row: 0, column: null, prefix: "", node: "", shuffle: 0 });
      field.value = lesson.text;
    };
    return element("form", { class: "sentence-bar", onsubmit: take },
      element("label", { for: "lesson-text" }, app.said("sentence")), field,
      element("button", { class: "plain" }, app.said("look")));
  }

  function go(step, isMoved = true) {
    app.set({ step });
    const [name, guide] = STEPS[step - 1];
    const heading = element("h2", { tabindex: "-1" }, app.said(`${name}_title`));
    list.replaceChildren(...STEPS.map(([one], at) =>
      element("li", {}, button("", () => go(at + 1), {
        kind: "step-link", "aria-current": at + 1 === step ? "step" : null,
      }))));
    list.querySelectorAll("button").forEach((one, at) =>
      one.append(element("span", { class: "n" }, String(at + 1)),
        element("span", {}, app.said(`${STEPS[at][0]}_step`))));
    const ends = element("div", { class: "ends" });
    if (step > 1) ends.append(button(`← ${app.said(`${STEPS[step - 2][0]}_step`)}`, () => go(step - 1)));
    if (step < STEPS.length) {
      ends.append(button(`${app.said(`${STEPS[step][0]}_step`)} →`, () => go(step + 1), { kind: "plain main" }));
    }
    const page = `docs/${app.language}/${guide}.md`;
    article.replaceChildren(
      element("p", { class: "of" }, app.said("step_of", { step, steps: STEPS.length })), heading,
      element("p", { class: "lead" }, app.said(`${name}_lead`)), body,
      element("aside", { class: "card notice" }, element("h3", {}, app.said("notice")),
        element("p", {}, app.said(`${name}_notice`)),
        element("p", { class: "note" }, app.said("guide"), " ",
          element("a", { href: `/guide/${app.language}/${guide}.md` }, page),
          ` · ${app.said(`${name}_guide`)}`)),
      exportCard(app, article, `regard-${step}-${name}`, () => shown?.rows() ?? [[]]),
      ends,
    );
    body.replaceChildren(element("p", { class: "ghost waiting" }, app.said("loading")));
    list.querySelector('[aria-current="step"]')?.scrollIntoView({ block: "nearest", inline: "center" });
    if (isMoved) {
      heading.focus({ preventScroll: true });
      if (article.getBoundingClientRect().top < 0) article.scrollIntoView();
    }
    draw();
  }

  async function draw() {
    const mine = ++turn;
    try {
      const module = await import(`./steps/${STEPS[app.state.step - 1][0]}.js`);
      const parts = await module.draw(app, lesson);
      if (mine === turn) keepingFocus(body, () => body.replaceChildren(...parts.filter(Boolean)));
      if (mine === turn) (shown = module).after?.(body);
    } catch (problem) {
      if (problem.name === "AbortError" || mine !== turn) return;
      if (!(problem instanceof Problem)) throw problem;
      body.replaceChildren(problemCard(app, problem, draw));
    }
  }

  return () => {
    turn = -1;
  };
}
