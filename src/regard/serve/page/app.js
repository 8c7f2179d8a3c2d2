/** The page: what is chosen, two languages, two themes, three ways to look. */
import { ask } from "./api.js";
import { showLearn } from "./learn.js";
import { problemCard } from "./problems.js";
import { hashOf, remember, remembered, stateOf } from "./state.js";
import { showTraining } from "./training.js";
import { choices, element, said } from "./view/elements.js";
import { showWork } from "./work.js";

const MODES = { work: showWork, learn: showLearn, training: showTraining };
const SNAPSHOT = /^step-\d+(-\d+)?$/;
const LANGUAGES = [["zh", "中文", "zh-CN"], ["en", "English", "en"]];

class App {
  constructor() {
    this.texts = {}; // a dictionary is loaded when its language is chosen
    this.state = stateOf(location.hash);
    this.language = remembered("language") ?? (/^zh/i.test(navigator.language) ? "zh" : "en");
    this.theme = remembered("theme") ?? "auto";
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.kept = new Map(); // answers that do not change while the page is open
    this.leave = () => {};
  }

  get words() {
    return this.texts[this.language];
  }

  get seen() {
    return this.theme === "auto" ? (this.dark.matches ? "dark" : "light") : this.theme;
  }

  said(name, values) {
    return said(this.words, name, values);
  }

  /** The name of a language in the page's own. */
  languageName(code) {
    try {
      return new Intl.DisplayNames([this.language === "zh" ? "zh-CN" : "en"], { type: "language" })
        .of(code);
    } catch {
      return code;
    }
  }

  set(changes) {
    Object.assign(this.state, changes);
    history.replaceState(null, "", hashOf(this.state));
  }

  /** The models to translate with; snapshots of a run are only to be looked at. */
  get served() {
    const found = this.models.filter((one) => !SNAPSHOT.test(one.name));
    return found.length ? found : this.models;
  }

  get snapshots() {
    return this.models.filter((one) => SNAPSHOT.test(one.name));
  }

  /** All ways that the models go, the first model first. */
  get directions() {
    return this.served.flatMap((model) =>
      model.directions.map((way) => ({ ...way, model: model.name })),
    );
  }

  get model() {
    const { model, from, to } = this.state;
    const goes = (one) => one.directions.some((way) =>
      (!from || way.from === from) && (!to || way.to === to));
    return this.models.find((one) => one.name === model) ?? this.served.find(goes)
      ?? this.served[0];
  }

  /** What every question says of languages and model. */
  get asking() {
    const { from, to, model } = this.state;
    return { ...(from && { from }), ...(to && { to }), ...(model && { model }) };
  }

  /** An answer, asked for once; a few are kept. */
  async once(path, body, signal) {
    const name = path + JSON.stringify(body);
    if (!this.kept.has(name)) {
      this.kept.set(name, await ask(path, body, signal));
      if (this.kept.size > 60) this.kept.delete(this.kept.keys().next().value);
    }
    return this.kept.get(name);
  }

  async start() {
    this.texts[this.language] = await dictionary(this.language);
    this.frame();
    addEventListener("hashchange", () => {
      if (hashOf(this.state) === location.hash) return;
      this.state = stateOf(location.hash);
      this.show();
    });
    this.dark.addEventListener("change", () => this.show());
    await this.connect();
  }

  async connect() {
    try {
      const { models, limits } = await ask("/api/v1/models");
      [this.models, this.limits] = [models, limits];
      this.runs = await ask("/api/v1/runs").then((found) => found.runs, () => []);
      this.show();
    } catch (problem) {
      this.heading();
      this.main.replaceChildren(problemCard(this, problem, () => this.connect()));
    }
  }

  frame() {
    const skip = element("a", { href: "#main", class: "skip", onclick: (event) => {
      event.preventDefault();
      this.main.focus();
    } });
    this.skip = skip;
    this.header = element("header", { class: "top" });
    this.main = element("main", { id: "main", tabindex: "-1" });
    this.footer = element("footer", {});
    document.body.replaceChildren(skip, this.header, this.main, this.footer);
  }

  heading() {
    const { documentElement: html, activeElement } = document;
    const focused = activeElement?.closest?.("[role=radiogroup]")?.dataset.name;
    html.lang = this.language === "zh" ? "zh-CN" : "en";
    html.dataset.theme = this.theme;
    document.title = `regard 顾 · ${this.said(this.state.mode)}`;
    this.skip.textContent = this.said("skip");
    const group = (name, label, options, chosen, onchoose) => {
      const made = choices(label, options, chosen, onchoose);
      made.dataset.name = name;
      return made;
    };
    const change = (name) => async (value) => {
      if (name === "language") this.texts[value] ??= await dictionary(value);
      this[name] = value;
      remember(name, value);
      this.show();
    };
    const modes = Object.keys(MODES).map((mode) => [mode, this.said(mode)]);
    this.header.replaceChildren(
      element("p", { class: "mark" }, "regard ", element("span", { lang: "zh-CN" }, "顾")),
      group("mode", this.said("mode"), modes, this.state.mode, (mode) => {
        this.set({ mode });
        this.show();
      }),
      element(
        "div", { class: "own" },
        group("language", this.said("language_choice"),
          LANGUAGES.map(([one, name, lang]) => [one, name, lang]),
          this.language, change("language")),
        group("theme", this.said("theme"),
          ["auto", "light", "dark"].map((one) => [one, this.said(`theme_${one}`)]),
          this.theme, change("theme")),
      ),
    );
    this.header.querySelector(`[data-name="${focused}"] [tabindex="0"]`)?.focus();
    this.footer.textContent = this.models
      ? this.served.map((one) => `${one.name}: ${one.network}`).join(" · ") : "";
  }

  show() {
    this.heading();
    if (!this.models) return;
    this.leave();
    this.leave = MODES[this.state.mode](this.main, this) ?? (() => {});
  }
}

async function dictionary(language) {
  const read = (path) => fetch(path).then((answer) => answer.json());
  const [panel, own] = await Promise.all([
    read(`/page/view/text.${language}.json`), read(`/page/text.${language}.json`),
  ]);
  return { ...panel, ...own };
}

const typed = document.getElementById("text")?.value ?? ""; // by who was quicker than the script
const app = new App();
if (typed && !app.state.text) app.state.text = typed;
await app.start();
