/** The page: what is chosen, two languages, two themes, three ways to look. */
import { ask } from "./api.js";
import { showLearn } from "./learn.js";
import { problemCard } from "./problems.js";
import { hashOf, MODES, stateOf } from "./state.js";
import { showTraining } from "./training.js";
import { choices, keepingFocus } from "./view/controls.js";
import { element, said, speak } from "./view/elements.js";
import { readerOf } from "./view/reader.js";
import { showWork } from "./work.js";

const SHOW = { work: showWork, learn: showLearn, training: showTraining };
const EXAMPLES = {
  zh: ["这本书我已经读过两遍了。", "你昨天为什么没来？", "他比我高十厘米。",
    "下雨的时候，我喜欢在家看书。"],
  en: ["When it rains, I like to read at home.", "Why did you not come yesterday?",
    "He is ten centimetres taller than I am."],
};
const SNAPSHOT = /^step-\d+(-\d+)?$/;

class App {
  constructor() {
    this.texts = {}; // a dictionary is loaded when its language is chosen
    this.state = stateOf(location.hash);
    this.reader = readerOf("", () => this.show());
    this.kept = new Map(); // answers that do not change while the page is open
    this.leave = () => {};
  }

  get language() {
    return this.reader.language;
  }

  /** The name of a language in the page's own. */
  languageName(code) {
    try {
      return new Intl.DisplayNames([this.reader.tag], { type: "language" }).of(code);
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
    return this.served.flatMap((model) => model.directions);
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

  /** Sentences to try: of one language, or of all from which the models translate. */
  examples(from = this.state.from) {
    const ways = this.directions.map((way) => way.from);
    const codes = from ? [from] : ways.length ? ways : ["zh"];
    const known = new Set(codes.map((code) => (code.startsWith("zh") ? "zh" : "en")));
    return [...known].flatMap((code) => EXAMPLES[code]);
  }

  /** An answer, asked for once; a few are kept. */
  async once(path, body) {
    const name = path + JSON.stringify(body);
    if (!this.kept.has(name)) {
      this.kept.set(name, await ask(path, body));
      if (this.kept.size > 60) this.kept.delete(this.kept.keys().next().value);
    }
    return this.kept.get(name);
  }

  async start() {
    this.texts[this.language] = await dictionary(this.language); // until then there is the form
    const skip = (event) => {
      event.preventDefault();
      this.main.focus();
    };
    this.skip = element("a.skip", { href: "#main", onclick: skip });
    this.header = element("header.top");
    this.main = element("main", { id: "main", tabindex: -1 });
    this.footer = element("footer");
    document.body.replaceChildren(this.skip, this.header, this.main, this.footer);
    addEventListener("hashchange", () => {
      if (hashOf(this.state) === location.hash) return;
      this.state = stateOf(location.hash);
      this.show();
    });
    await this.connect();
  }

  async connect() {
    try {
      const { models, limits } = await ask("/api/v1/models");
      [this.models, this.limits] = [models, limits];
      this.runs = await ask("/api/v1/runs").then((found) => found.runs, () => []);
      await this.show();
    } catch (problem) {
      await this.heading();
      this.main.replaceChildren(problemCard(this, problem, () => this.connect()));
    }
  }

  async heading() {
    try {
      this.texts[this.language] ??= await dictionary(this.language);
    } catch {
      [this.reader.language] = Object.keys(this.texts); // the server is gone: as it was
    }
    speak(this.texts[this.language]);
    document.title = `regard 顾 · ${said(this.state.mode)}`;
    this.skip.textContent = said("skip");
    const modes = MODES.map((mode) => [mode, said(mode)]);
    const go = (mode) => {
      this.set({ mode });
      this.show();
    };
    keepingFocus(this.header, () => this.header.replaceChildren(
      element("p.mark", "regard ", element("span", { lang: "zh-CN" }, "顾")),
      choices("mode", said("mode"), modes, this.state.mode, go),
      element("div.own", this.reader.controls())));
    this.footer.textContent = this.models
      ? this.served.map((one) => `${one.name}: ${one.network}`).join(" · ") : "";
  }

  async show() {
    await this.heading();
    if (!this.models) return;
    this.leave();
    this.leave = SHOW[this.state.mode](this.main, this) ?? (() => {});
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
