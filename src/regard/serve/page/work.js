/** Work: a translation while one types, and all that a translator asks of it. */
import { ask, Problem } from "./api.js";
import { codeCard } from "./code.js";
import { button, menu, toggle } from "./controls.js";
import { exportCard } from "./export.js";
import { fileCard } from "./files.js";
import { historyCard, keepTranslation } from "./history.js";
import { problemCard } from "./problems.js";
import { spokenLinks, writtenView } from "./written.js";
import { remember, remembered } from "./state.js";
import { termsCard, termsOf } from "./terms.js";
import { element } from "./view/elements.js";

const PAUSE = 120; // ms without a key before a text is translated,
const THINK = 450; // ... and before its alternatives and links are asked for
const N_BEST = 4;

export function showWork(root, app) {
  let [timer, later, going] = [0, 0, null];
  let answer = null;
  const source = element("textarea", {
    id: "source", class: "field", rows: 5, spellcheck: "false", dir: "auto",
    placeholder: app.said("source_hint"), "aria-describedby": "count",
  });
  source.value = app.state.text;
  const count = element("p", { id: "count", class: "note" });
  const examples = element("p", { class: "examples" });
  const target = element("div", { class: "target", id: "target-text" });
  const state = element("p", { class: "note", role: "status" });
  const trouble = element("div", {});
  const copy = button(app.said("copy"), copyText, { name: "copy" });
  const others = element("section", { class: "card", hidden: true });
  const ways = element("div", { class: "controls ways" });
  const written = writtenView(app, { onpoint: () => {} });
  const rail = element("section", { class: "card", hidden: true });
  const code = codeCard(app, () => ({ text: source.value, answer, terms: termsOf(app) }));
  const history = historyCard(app, (kept) => {
    app.set({ from: kept.from, to: kept.to });
    drawWays();
    type(kept.text);
  });
  const files = fileCard(app, root);

  root.replaceChildren(
    element("h1", { class: "hidden" }, app.said("work_title")),
    ways,
    element(
      "div", { class: "desk" },
      element("section", { class: "card sheet-card" },
        element("label", { for: "source", class: "cap" }, app.said("source")), source,
        element("div", { class: "under" }, count, examples)),
      element("section", { class: "card sheet-card", "aria-labelledby": "target-cap" },
        element("h2", { id: "target-cap", class: "cap" }, app.said("translation")), target, trouble,
        element("div", { class: "under" }, state, copy)),
    ),
    rail,
    others,
    element("div", { class: "drawers" }, termsCard(app, () => soon(0)), files, history.root,
      code.root, exportCard(app, root, "translation", rowsForCsv)),
  );
  drawWays();
  drawExamples();
  source.addEventListener("input", () => soon(PAUSE));
  root.onkeydown = (event) => {
    if (event.key === "Escape" && event.target === source && going) stop();
  };
  soon(0);

  function drawWays() {
    const all = app.directions;
    const only = (name, test = () => true) => [...new Set(all.filter(test).map((way) => way[name]))];
    const named = (code) => [code, app.languageName(code)];
    const { from, to } = app.state;
    const change = (changes) => {
      app.set(changes);
      drawWays();
      drawExamples();
      soon(0);
    };
    const canSwap = all.some((way) => way.from === (to || answer?.to) && way.to === (from || answer?.from));
    const parts = [];
    if (all.length) {
      parts.push(
        menu("from", app.said("from"), [["", app.said("auto")], ...only("from").map(named)], from,
          (value) => change({ from: value, to: value && !all.some((way) => way.from === value && way.to === to) ? "" : to })),
        button("⇄", () => {
          const turned = { from: to || answer?.to, to: from || answer?.from };
          if (answer?.text) source.value = answer.text;
          change(turned);
        }, { name: "swap", "aria-label": app.said("swap"), title: app.said("swap"), disabled: !canSwap }),
        menu("to", app.said("to"),
          [["", app.said("auto")], ...only("to", (way) => !from || way.from === from).map(named)], to,
          (value) => change({ to: value })),
      );
    }
    if (app.served.length > 1) {
      const names = app.served.map((one) => [one.name, one.name]);
      parts.push(menu("model", app.said("model"), [["", app.said("auto")], ...names],
        app.state.model, (model) => change({ model })));
    }
    parts.push(toggle("confidence", app.said("confidence"), remembered("confidence") ?? true, (on) => {
      remember("confidence", on);
      root.classList.toggle("sure", !on);
    }, { title: app.said("confidence_help") }));
    root.classList.toggle("sure", !(remembered("confidence") ?? true));
    ways.replaceChildren(...parts);
  }

  function drawExamples() {
    const from = app.state.from || app.directions[0]?.from || "zh";
    const list = app.said(from.startsWith("zh") ? "examples_zh" : "examples_en").split("|");
    examples.replaceChildren(
      ...list.map((text) => button(text, () => type(text), { kind: "chiplet" })),
    );
  }

  function type(text) {
    source.value = text;
    source.focus();
    soon(0);
  }

  function stop() {
    clearTimeout(timer);
    clearTimeout(later);
    going?.abort();
    going = null;
    target.classList.remove("waiting");
  }

  function soon(pause) {
    stop();
    const text = source.value;
    app.set({ text: text.length > 500 ? "" : text });
    const { chars } = app.limits;
    count.textContent = app.said("count", {
      n: text.length.toLocaleString(), most: chars.toLocaleString(),
    });
    count.classList.toggle("over", text.length > chars);
    examples.hidden = text.trim() !== "";
    trouble.replaceChildren();
    if (!text.trim()) return empty();
    if (text.length > chars) return tooLong(text);
    target.classList.add("waiting");
    timer = setTimeout(() => translate(text), pause);
  }

  function empty() {
    answer = null;
    target.replaceChildren(element("span", { class: "ghost" }, app.said("target_hint")));
    state.textContent = "";
    copy.disabled = true;
    rail.hidden = others.hidden = true;
  }

  function tooLong(text) {
    empty();
    target.replaceChildren();
    const over = { n: text.length.toLocaleString(), most: app.limits.chars.toLocaleString() };
    trouble.replaceChildren(
      element("div", { class: "problem long", role: "alert" },
        element("strong", {}, app.said("long_title")),
        element("p", {}, app.said("long_text", over)),
        element("div", { class: "row" },
          button(app.said("long_cut"), () => type(text.slice(0, app.limits.chars))),
          button(app.said("long_file"), () =>
            files.take(new File([text], "text.txt", { type: "text/plain" })))),
      ),
    );
  }

  async function translate(text) {
    going = new AbortController();
    const { signal } = going;
    const asked = { text, ...app.asking, terms: termsOf(app) };
    try {
      const started = performance.now();
      const found = await ask("/api/v1/translate", asked, signal);
      show(found.translations[0], performance.now() - started);
      later = setTimeout(() => deepen(text, asked, signal), THINK - PAUSE);
    } catch (problem) {
      fail(problem);
    }
  }

  /** The same once more, with alternatives, links and probabilities: it takes longer. */
  async function deepen(text, asked, signal) {
    try {
      const beam = Math.min(app.limits.beam, Math.max(N_BEST, app.model.beam));
      const more = { nbest: Math.min(N_BEST, beam), beam, alignments: true, log_probs: true };
      const found = await ask("/api/v1/translate", { ...asked, ...more }, signal);
      show(found.translations[0]);
      keepTranslation({ text, said: answer.text, from: answer.from, to: answer.to });
      history.update();
    } catch (problem) {
      if (problem instanceof Problem && problem.kind !== "refused") fail(problem);
    }
  }

  function fail(problem) {
    if (!(problem instanceof Problem)) {
      if (problem.name === "AbortError") return;
      throw problem;
    }
    target.classList.remove("waiting");
    state.textContent = "";
    trouble.replaceChildren(problemCard(app, problem, () => soon(0)));
  }

  function show(found, ms = null) {
    answer = found;
    target.classList.remove("waiting");
    target.lang = found.to ?? "";
    trouble.replaceChildren();
    copy.disabled = !found.text;
    choose(0);
    const way = found.from && found.to
      ? `${app.languageName(found.from)} → ${app.languageName(found.to)}` : found.model;
    if (ms != null) state.textContent = app.said("done_in", { way, ms: Math.round(ms) });
    if (!found.finished) state.textContent = app.said("unfinished");
    const list = found.alternatives;
    others.hidden = list.length < 2;
    others.replaceChildren(
      element("h2", {}, app.said("alternatives")),
      element("ol", { class: "others" }, ...list.map((one, rank) =>
        element("li", {},
          button(one.text || app.said("nothing"), () => choose(rank), { kind: "other", lang: found.to }),
          element("span", { class: "number", title: app.said("score_help") }, one.score.toFixed(3))),
      )),
    );
    code.update();
  }

  function choose(rank) {
    const one = answer.alternatives[rank];
    answer = { ...answer, text: one.text, rank };
    written.update(target, one);
    rail.hidden = !one.alignment?.src_pieces.length;
    if (!rail.hidden) {
      rail.replaceChildren(element("h2", {}, app.said("ribbon")), written.rail,
        written.spoken, element("p", { class: "note" }, `${app.said("ribbon_help")} ${app.said("confidence_help")}`));
    }
    [...others.querySelectorAll("li")].forEach((line, at) =>
      line.firstChild.setAttribute("aria-pressed", String(at === rank)));
  }

  async function copyText() {
    try {
      await navigator.clipboard.writeText(answer.text);
      copy.textContent = app.said("copied");
    } catch {
      getSelection().selectAllChildren(target);
      copy.textContent = app.said("copy_keys");
    }
    setTimeout(() => { copy.textContent = app.said("copy"); }, 1600);
  }

  function rowsForCsv() {
    const one = answer?.alternatives[answer.rank ?? 0];
    const pieces = one?.pieces ?? [];
    return [["piece", "probability", "from"], ...pieces.map((piece, at) => [
      piece.piece, Math.exp(piece.log_prob).toFixed(6), spokenLinks(one.alignment, at),
    ])];
  }

  return () => {
    stop();
    root.onkeydown = null;
    files.leave();
  };
}
