/** Learn: ten steps, one idea each, all about the same sentence and the same choices. */
import { kindOf, rowsOf } from "./api.js";
import { exportCard } from "./export.js";
import {
  button, element, entry, keepingFocus, menu, note, range, said, slider, toggle, within,
} from "./parts.js";
import { sideOf } from "./pieces.js";
import { showProblem } from "./problems.js";
import { START } from "./state.js";

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
    Object.assign(this, { app, redraw, table: [[]] }); // a step puts its numbers into the table
  }

  get text() {
    return this.app.state.text.trim() || this.app.examples()[0];
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
      const given = ["<s>", ...found.tgt_pieces.slice(0, -1)];
      const sides = { src: sideOf(found.src_pieces), tgt: sideOf(found.tgt_pieces),
        given: sideOf(given) };
      const kinds = {};
      for (const [kind, one] of Object.entries(found.weights)) {
        const [queries, keys] = SIDES[kind];
        if (one) kinds[kind] = { ...kindOf(one), queries, keys, causal: kind === "decoder" };
      }
      found.panel = { sides, kinds };
    }
    return found;
  }

  /** Layer and head put right for a kind; a single head, for arithmetic has no mean. */
  place(look, kind) {
    const { layers, heads } = look.panel.kinds[kind];
    const { layer, head } = this.app.state;
    return { kind, layer: within(layer ?? layers - 1, layers), head: within(head, heads), layers,
      heads };
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
    const [queries, keys] = SIDES[kind].map((side) => look.panel.sides[side].pieces.labels);
    const [query, key, value, weights] = [found.query, found.key, found.value, found.weights]
      .map(rowsOf);
    const { row, column } = this.app.state;
    const at = within(row, query.length);
    const most = weights[at].indexOf(Math.max(...weights[at]));
    return { ...found, layer, head, query, key, value, weights, queries, keys,
      row: at, column: column == null ? most : within(column, key.length) };
  }

  /** A menu that sets what it is named after, and `more`. */
  menu(name, label, options, chosen, more = {}) {
    return menu(name, said(label), options, chosen, (value) =>
      this.set({ [name]: value, ...more }));
  }

  toggle(name, label, more) {
    return toggle(name, label, this.app.state[name], (on) => this.set({ [name]: on }), more);
  }

  slider(name, label, options, more = {}) {
    return slider(name, said(label), { value: this.app.state[name], ...options },
      (value) => this.set({ [name]: value, ...more }));
  }

  kindMenu(look) {
    const names = Object.keys(look.panel.kinds).map((one) => [one, said(one)]);
    return this.menu("kind", "kind", names, this.kind, { row: 0, column: null });
  }

  numberMenu(name, n, chosen, ...before) {
    return this.menu(name, name, [...before, ...range(n).map((at) => [at, at + 1])], chosen);
  }

  /** Menus for layer and head, and for the kind if there is a choice. */
  headControls(look, kind = null) {
    const { layer, head, layers, heads } = this.place(look, kind ?? this.kind);
    return [!kind && this.kindMenu(look), this.numberMenu("layer", layers, layer),
      this.numberMenu("head", heads, head)];
  }

  tokenMenu(name, label, tokens, chosen, more = {}) {
    return this.menu(name, label, tokens.map((one, at) => [at, `${at + 1} · ${one}`]), chosen,
      more);
  }

  rowMenu({ queries, row }, label = "query_of") {
    return this.tokenMenu("row", label, queries, row, { column: null });
  }
}

export function showLearn(root, app) {
  let turn = 0;
  const body = element("div.step-body");
  const lesson = new Lesson(app, draw);
  const list = element("ol.steps");
  const article = element("article.step");
  const voice = element("p.hidden", { "aria-live": "polite" }); // for who hears what changed
  root.replaceChildren(element("h1.hidden", said("learn")), sentenceBar(),
    element("div.course", element("nav", { "aria-label": said("steps") }, list), article), voice);
  go(app.state.step, false);

  function sentenceBar() {
    const field = element("input.field", { id: "lesson-text", maxlength: 300, dir: "auto" });
    field.value = lesson.text;
    const take = (event) => {
      event.preventDefault();
      const { row, column, prefix, node, shuffle } = START;
      lesson.set({ text: field.value.trim(), row, column, prefix, node, shuffle });
      field.value = lesson.text;
    };
    return element("form.sentence-bar", { onsubmit: take },
      element("label", { for: "lesson-text" }, said("sentence")), field,
      element("button.plain", said("look")));
  }

  function go(step, isMoved = true) {
    app.set({ step });
    const [name, guide] = STEPS[step - 1];
    const lessons = STEPS.map(([one]) => entry("lessons")[one]);
    const [, title, lead, notice, section] = lessons[step - 1];
    const heading = element("h2", { tabindex: -1 }, title);
    list.replaceChildren(...lessons.map(([short], at) => element("li",
      button([element("span.n", String(at + 1)), element("span", short)], () => go(at + 1),
        { kind: "step-link", "aria-current": at + 1 === step ? "step" : null }))));
    const page = `${app.language}/${guide}.md`;
    article.replaceChildren(
      element("p.of", said("step_of", { step, steps: STEPS.length })), heading,
      element("p.lead", lead), body,
      element("aside.card.notice", element("h3", said("notice")), element("p", notice),
        note(said("guide"), element("a", { href: `/guide/${page}` }, `docs/${page}`),
          ` · ${section}`)),
      exportCard(app, article, `regard-${step}-${name}`, () => lesson.table),
      element("div.ends",
        step > 1 && button(`← ${lessons[step - 2][0]}`, () => go(step - 1)),
        step < STEPS.length && button(`${lessons[step][0]} →`, () => go(step + 1),
          { kind: "plain main" })));
    body.replaceChildren(element("p.ghost.waiting", said("loading")));
    list.querySelector("[aria-current]").scrollIntoView({ block: "nearest", inline: "center" });
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
      if (mine !== turn) return;
      keepingFocus(body, () => body.replaceChildren(...parts.filter(Boolean)));
      module.after?.();
      const told = body.querySelector(".verdict, .facts");
      voice.textContent = told
        ? `${told.closest(".card").firstChild.textContent}: ${told.innerText}` : "";
    } catch (problem) {
      if (mine === turn) showProblem(app, body, problem, draw);
    }
  }

  return () => {
    turn = -1;
  };
}
