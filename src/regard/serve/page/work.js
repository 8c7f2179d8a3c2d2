/** Work: a translation while one types, and all that a translator asks of it. */
import { ask, Problem } from "./api.js";
import { codeCard } from "./code.js";
import { exportCard } from "./export.js";
import { fileCard } from "./files.js";
import { historyCard, keepTranslation } from "./history.js";
import { button, element, keepingFocus, menu, note, numberOf, said, toggle } from "./parts.js";
import { problemBox, showProblem } from "./problems.js";
import { termsCard, termsOf } from "./terms.js";
import { remember, remembered } from "./view/memory.js";
import { spokenLinks, writtenView } from "./written.js";

const PAUSE = 120; // ms without a key before a text is translated,
const THINK = 450; // ... and before its alternatives and links are asked for
const N_BEST = 4;

export function showWork(root, app) {
  let [timer, later, going] = [0, 0, null];
  let answer = null;
  const source = element("textarea.field", {
    id: "source", rows: 5, spellcheck: "false", dir: "auto",
    placeholder: said("source_hint"), "aria-describedby": "count",
  });
  source.value = app.state.text;
  const count = element("p.note", { id: "count" });
  const examples = element("p.examples");
  const target = element("div.target", { id: "target-text" });
  const state = element("p.note", { role: "status" });
  const trouble = element("div");
  const copy = button(said("copy"), copyText, { name: "copy" });
  const swap = button("⇄", swapSides, { name: "swap", "aria-label": said("swap"),
    title: said("swap") });
  const others = element("section.card", { hidden: true });
  const ways = element("div.controls.ways");
  const written = writtenView();
  const rail = element("section.card", { hidden: true });
  const code = codeCard(app, () => ({ text: source.value, answer, terms: termsOf() }));
  const history = historyCard((kept) => {
    if (app.state.from || app.state.to) app.set({ from: kept.from, to: kept.to });
    drawWays();
    type(kept.text);
  });
  const files = fileCard(app, root);

  root.replaceChildren(
    element("h1.hidden", said("work")),
    ways,
    element("div.desk",
      element("section.card.sheet-card",
        element("label.cap", { for: "source" }, said("source")), source,
        element("div.under", count, examples)),
      element("section.card.sheet-card", { "aria-labelledby": "target-cap" },
        element("h2.cap", { id: "target-cap" }, said("translation")), target, trouble,
        element("div.under", state, copy))),
    rail, others,
    element("div.drawers", termsCard(() => soon(0)), files, history.root,
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
    const { from, to, model } = app.state;
    const all = app.directions;
    const auto = ["", said("auto")];
    const codes = (name, ways) => [auto, ...[...new Set(ways.map((way) => way[name]))].map((code) =>
      [code, app.languageName(code)])];
    const keeps = (value) => !value || all.some((way) => way.from === value && way.to === to);
    const isSure = !(remembered("confidence") ?? true);
    root.classList.toggle("sure", isSure);
    const parts = all.length ? [
      menu("from", said("from"), codes("from", all), from, (value) =>
        change({ from: value, to: keeps(value) ? to : "" })),
      swap,
      menu("to", said("to"), codes("to", all.filter((way) => !from || way.from === from)), to,
        (value) => change({ to: value })),
    ] : [];
    if (app.served.length > 1) {
      const names = app.served.map((one) => [one.name, one.name]);
      parts.push(menu("model", said("model"), [auto, ...names], model, (value) =>
        change({ model: value })));
    }
    parts.push(toggle("confidence", said("confidence"), !isSure, (on) => {
      remember("confidence", on);
      root.classList.toggle("sure", !on);
    }, { title: said("confidence_help") }));
    keepingFocus(ways, () => ways.replaceChildren(...parts));
    settleSwap();
  }

  function change(changes) {
    app.set(changes);
    drawWays();
    drawExamples();
    soon(0);
  }

  function swapSides() {
    const { from, to } = app.state;
    if (answer?.text) source.value = answer.text;
    change({ from: to, to: from }); // what was left open stays open
  }

  /** There must be a way back. */
  function settleSwap() {
    const [from, to] = [app.state.from || answer?.from, app.state.to || answer?.to];
    swap.disabled = !app.directions.some((way) => way.from === to && way.to === from);
  }

  function drawExamples() {
    examples.replaceChildren(
      ...app.examples().map((text) => button(text, () => type(text), { kind: "chiplet" })));
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
    const size = { n: text.length.toLocaleString(), most: chars.toLocaleString() };
    count.textContent = said("count", size);
    count.classList.toggle("over", text.length > chars);
    examples.hidden = text.trim() !== "";
    trouble.replaceChildren();
    if (!text.trim()) return empty(element("span.ghost", said("target_hint")));
    if (text.length > chars) return tooLong(text, size);
    target.classList.add("waiting");
    timer = setTimeout(() => translate(text), pause);
  }

  function empty(...hint) {
    answer = null;
    target.replaceChildren(...hint);
    target.classList.remove("waiting");
    state.textContent = "";
    copy.disabled = true;
    rail.hidden = others.hidden = true;
  }

  function tooLong(text, size) {
    empty();
    trouble.replaceChildren(problemBox("long", said("long_title"),
      element("p", said("long_text", size)),
      element("div.row",
        button(said("long_cut"), () => type(text.slice(0, app.limits.chars))),
        button(said("long_file"), () => files.take(new File([text], "text.txt"))))));
  }

  async function translate(text) {
    going = new AbortController();
    const { signal } = going;
    const asked = { text, ...app.asking, terms: termsOf() };
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
    if (problem instanceof Problem) empty();
    showProblem(app, trouble, problem, () => soon(0));
  }

  function show(found, ms = null) {
    answer = found;
    target.classList.remove("waiting");
    target.lang = found.to ?? "";
    trouble.replaceChildren();
    copy.disabled = !found.text;
    const way = found.from && found.to
      ? `${app.languageName(found.from)} → ${app.languageName(found.to)}` : found.model;
    if (ms != null) state.textContent = said("done_in", { way, ms: Math.round(ms) });
    if (!found.finished) state.textContent = said("unfinished");
    const list = found.alternatives;
    others.hidden = list.length < 2;
    others.replaceChildren(
      element("h2", said("alternatives")),
      element("ol.others", list.map((one, rank) => element("li",
        button(one.text || said("nothing"), () => choose(rank),
          { kind: "other", lang: found.to }),
        element("span.number", numberOf(one.score, 3))))),
      note(said("score_help")));
    choose(0);
    settleSwap();
    code.update();
  }

  function choose(rank) {
    const one = answer.alternatives[rank];
    answer = { ...answer, text: one.text, rank };
    written.update(target, one);
    rail.hidden = !one.alignment?.src_pieces.length;
    if (!rail.hidden) {
      rail.replaceChildren(element("h2", said("ribbon")), written.rail, written.spoken,
        note(said("ribbon_help"), " ", said("confidence_help")));
    }
    [...others.querySelectorAll("li")].forEach((line, at) =>
      line.firstChild.setAttribute("aria-pressed", String(at === rank)));
  }

  async function copyText() {
    try {
      await navigator.clipboard.writeText(answer.text);
      copy.textContent = said("copied");
    } catch {
      getSelection().selectAllChildren(target);
      copy.textContent = said("copy_keys");
    }
    setTimeout(() => { copy.textContent = said("copy"); }, 1600);
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
