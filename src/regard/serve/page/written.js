/** A translation as tokens: how sure each was, and which source tokens it comes from. */
import { ribbon } from "./draw.js";
import { element, said, within } from "./parts.js";
import { labelsOf, placesOf } from "./pieces.js";
import { onArrow } from "./view/elements.js";

const GRADES = [[0.8, ""], [0.5, "likely"], [0.2, "unsure"], [0, "doubtful"]];

const shareOf = ({ log_prob }) =>
  said("probability", { share: Math.exp(log_prob).toFixed(2) });

/** The source tokens of a target token, in words. */
export function spokenLinks(alignment, target) {
  const labels = labelsOf(alignment?.src_pieces ?? []);
  const from = (alignment?.links ?? []).filter(([, to]) => to === target);
  return from.map(([source]) => labels[source]).join(" ");
}

export function writtenView() {
  const rail = element("div.scroller.rail", {
    tabindex: 0, role: "slider", "aria-label": said("ribbon"),
    "aria-valuemin": 1, "aria-orientation": "horizontal",
  });
  const spoken = element("p.spoken", { "aria-live": "polite" });
  let [one, at, fixed, tokens] = [null, null, null, []];

  rail.addEventListener("keydown", (event) => one?.alignment && onArrow(event, (down, right) => {
    const n = one.alignment.tgt_pieces.length;
    const from = fixed?.side === "target" ? fixed.place : down + right > 0 ? -1 : n;
    point({ side: "target", place: within(from + down + right, n) }, true);
  }));
  rail.addEventListener("pointerleave", () => point(fixed, false));

  function point(place, isFixed) {
    const isSame = JSON.stringify(place) === JSON.stringify(at);
    at = place;
    if (isFixed) fixed = place;
    if (isSame) return;
    mark();
    drawRail();
  }

  function mark() {
    const { links } = one.alignment;
    tokens.forEach((token, place) => {
      const isOn = at && (at.side === "target" ? at.place === place
        : links.some(([from, to]) => from === at.place && to === place));
      token?.classList.toggle("on", Boolean(isOn));
    });
  }

  function drawRail() {
    const { src_pieces, tgt_pieces, links } = one.alignment;
    const [source, target] = [labelsOf(src_pieces), labelsOf(tgt_pieces)];
    const linked = new Set(links.map(([from, to]) => `${from}-${to}`));
    const weight = (from, to) => Number(linked.has(`${from}-${to}`));
    const width = Math.max(0, rail.clientWidth - 8);
    rail.replaceChildren(ribbon(source, target, weight, {
      label: said("ribbon"), at, onpoint: point, width,
    }));
    const text = sentence(source, target, links);
    spoken.textContent = text;
    rail.setAttribute("aria-valuemax", Math.max(1, target.length));
    rail.setAttribute("aria-valuenow", at?.side === "target" ? at.place + 1 : 1);
    rail.setAttribute("aria-valuetext", text);
  }

  function sentence(source, target, links) {
    if (!at) return said("ribbon_start");
    const [mine, theirs, own, other] = at.side === "target"
      ? [target, source, 1, 0] : [source, target, 0, 1];
    const found = links.filter((link) => link[own] === at.place).map((link) => theirs[link[other]]);
    const values = { token: mine[at.place], others: found.join(said("and")) };
    if (!found.length) return said("links_none", values);
    if (!own) return said("links_to", values);
    const piece = one.pieces?.[at.place];
    return [said("links_from", values), piece && shareOf(piece)].filter(Boolean).join(" ");
  }

  function update(target, found) {
    [one, at, fixed, tokens] = [found, null, null, []];
    const pieces = found.pieces?.map((piece) => piece.piece) ?? [];
    const places = placesOf(pieces, found.text);
    let end = 0;
    const parts = [];
    places.forEach((place, number) => {
      if (!place) return;
      if (place[0] > end) parts.push(found.text.slice(end, place[0]));
      end = place[1];
      const piece = found.pieces[number];
      const grade = GRADES.find(([least]) => Math.exp(piece.log_prob) >= least)[1];
      const token = element("span", {
        class: `word ${grade}`, title: shareOf(piece),
        onpointerenter: () => found.alignment && point({ side: "target", place: number }, false),
        onpointerleave: () => found.alignment && point(fixed, false),
      }, found.text.slice(...place));
      tokens[number] = token;
      parts.push(token);
    });
    parts.push(found.text.slice(end));
    target.replaceChildren(...parts);
    if (!found.alignment) return;
    drawRail();
    requestAnimationFrame(() => one === found && drawRail()); // now it knows its width
  }

  return { rail, spoken, update };
}
