/** Figures in SVG: strips of numbers, bars, curves, ribbons. Each can be saved as a file. */
import { svg } from "./parts.js";
import { colourAt, css, painted, themed } from "./view/colours.js";

/** A figure with a name for those who cannot see it. */
export function figure(width, height, label, ...children) {
  const box = { viewBox: `0 0 ${width} ${height}`, width, height };
  return svg("svg.figure", { ...box, role: "img", "aria-label": label }, ...children);
}

/** A text at a place; its classes say how it looks and on which side of the place it stands. */
export const words = (x, y, text, kind = null, more = {}) =>
  svg("text", { x, y, class: kind, ...more }, text);

export const box = (kind, x, y, width, height, more = {}) =>
  svg("rect", { x, y, width, height, class: kind, ...more });

const pen = document.createElement("canvas").getContext("2d");

/** How wide a text will be; the letters are those of the page. */
export function widthOf(text, size = 14) {
  pen.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

/** A text cut to a width, with a sign that it was. */
export function cut(text, width, size = 14) {
  if (widthOf(text, size) <= width) return text;
  const letters = [...text];
  while (letters.length > 1 && widthOf(`${letters.join("")}…`, size) > width) letters.pop();
  return `${letters.join("")}…`;
}

const SIGNED = {
  light: { zero: [251, 250, 247], less: [178, 74, 28], more: [32, 98, 150] },
  dark: { zero: [27, 30, 36], less: [244, 150, 92], more: [96, 190, 226] },
};

/** The colour of a number that may be negative: `limit` has the full colour. */
const signedColour = (limit) => (value) => {
  const { zero, less, more } = themed(SIGNED);
  const share = Math.min(Math.abs(value) / (limit || 1), 1) ** 0.75;
  const far = value < 0 ? less : more;
  return zero.map((channel, at) => Math.round(channel + (far[at] - channel) * share));
};

/** Rows of numbers as one picture, a pixel each, stretched; signed numbers have two colours. */
export function heat(rows, { x = 0, y = 0, width, height, limit = null, opacity = null }) {
  const canvas = painted(rows, limit == null ? colourAt : signedColour(limit));
  return svg("g", { opacity },
    svg("image.pixels",
      { x, y, width, height, href: canvas.toDataURL(), preserveAspectRatio: "none" }),
    box("frame", x, y, width, height));
}

export const largest = (rows) => Math.max(1e-9, ...rows.flat().map(Math.abs));

/** How wide a figure may be: less on a phone, and beside the steps. */
export const room = (most) =>
  Math.min(most, innerWidth - (innerWidth > 900 ? 354 : innerWidth > 560 ? 94 : 66));

/** Where strips begin, how tall each is, and how wide, if something stands behind it. */
export const [LEFT, TALL] = [96, 26];
export const stripWidth = (after = 0) => Math.max(90, room(LEFT + 720 + after) - LEFT - after);

/** Rows of signed numbers, each with its name before it; all have one limit, or each its own. */
export function strips(names, vectors, width,
  { limit = largest(vectors), limits = [], opacities = [] } = {}) {
  return names.flatMap((name, at) => [
    heat([vectors[at]], { x: LEFT, y: 2 + at * TALL, width, height: TALL - 5,
      limit: limits[at] ?? limit, opacity: opacities[at] }),
    words(LEFT - 10, at * TALL + 18, cut(name, LEFT - 14), "end"),
  ]);
}

/** A matrix of weights with its names; `inside(row, column, x, y)` draws upon a cell. */
export function grid(label, queries, keys, weights, { cell, limit = null, inside = null }) {
  const [left, top] = [queries, keys].map((names) =>
    Math.min(104, 18 + Math.max(...names.map((name) => widthOf(name)))));
  const [width, height] = [cell * keys.length, cell * queries.length];
  return figure(left + width + 4, top + height + 4, label,
    heat(weights, { x: left, y: top, width, height, limit }),
    inside && queries.flatMap((_, row) => keys.flatMap((_, at) =>
      inside(row, at, left + at * cell, top + row * cell))),
    queries.map((name, row) =>
      words(left - 8, top + (row + 0.5) * cell + 5, cut(name, left - 12), "end")),
    keys.map((name, at) => {
      const [x, y] = [left + (at + 0.5) * cell + 5, top - 8];
      return words(x, y, cut(name, top - 12), null, { transform: `rotate(-90 ${x} ${y})` });
    }));
}

/** Labelled bars from 0 to `most`, one a line, with their numbers. */
export function bars(items, { label, width = room(360), chosen = -1 }) {
  const line = 26;
  const names = Math.min(130, Math.max(30, ...items.map(([name]) => widthOf(name) + 10)));
  const longest = width - names - 64;
  return figure(width, items.length * line, label, items.map(([name, value], at) => {
    const middle = at * line + line / 2;
    return svg("g", { class: at === chosen ? "chosen" : null },
      svg("title", `${name} ${value.toFixed(6)}`),
      words(names - 8, middle + 5, cut(name, names - 10), "end"),
      box("trough", names, middle - 8, longest, 16),
      box(null, names, middle - 8, value * longest, 16,
        { rx: 1, fill: css(colourAt(0.35 + 0.5 * value)) }),
      words(width - 58, middle + 5, value.toFixed(3), "number"));
  }));
}

const NICE = [1, 2, 2.5, 5, 10];
function ticksOf(low, high, n = 5, least = 0) {
  const raw = Math.max((high - low) / n, least);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * NICE.find((one) => one * power >= raw * 0.999);
  const ticks = [];
  for (let at = Math.ceil(low / step); at * step <= high + step * 1e-6; at++) {
    ticks.push(Number((at * step).toPrecision(10)));
  }
  return ticks;
}

const short = (value) => {
  const size = Math.abs(value);
  if (size >= 1e6) return `${value / 1e6}M`;
  if (size >= 1e4) return `${value / 1e3}k`;
  return size && size < 1e-3 ? value.toExponential(0) : String(value);
};

/** The path through points, each [x, y]. */
export const pathOf = (points) =>
  points.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

/** Curves over one axis of whole numbers; each has points [x, y] and the number of its colour. */
export function curves(lines, { label, most, height, xName, mark = null, xTick = short }) {
  const width = room(most);
  const [left, right, top, bottom] = [52, 26, 12, 36];
  const known = lines.map((line) => line.points.filter(([, y]) => Number.isFinite(y)));
  if (!known.flat().length) return figure(width, height, label);
  const span = (at) => {
    const values = known.flat().map((point) => point[at]);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const more = low === high ? Math.abs(low) / 2 || 1 : 0; // around what is always the same
    return [low - more, high + more];
  };
  const [[xLow, xHigh], [yLow, yHigh]] = [span(0), span(1)];
  const across = (x) => left + ((x - xLow) / (xHigh - xLow)) * (width - left - right);
  const up = (y) => height - bottom - ((y - yLow) / (yHigh - yLow)) * (height - top - bottom);
  const line = (kind, x1, x2, y1, y2) => svg("line", { x1, x2, y1, y2, class: kind });
  return figure(width, height, label,
    ticksOf(yLow, yHigh).map((y) => [
      line("grid", left, width - right, up(y), up(y)),
      words(left - 8, up(y) + 4, short(y), "tick end"),
    ]).flat(),
    ticksOf(xLow, xHigh, Math.max(2, width / 60), 1).map((x) =>
      words(across(x), height - bottom + 18, xTick(x), "tick middle")),
    mark != null && line("mark", across(mark), across(mark), top, height - bottom),
    known.flatMap((points, at) => {
      const kind = `curve curve-${lines[at].colour ?? 0}`;
      const places = points.map(([x, y]) => [across(x), up(y)]);
      const dots = points.length < 4 ? places : []; // one point alone is no line
      return [svg("path", { d: pathOf(places), class: kind }),
        ...dots.map(([cx, cy]) => svg("circle", { cx, cy, r: 4, class: kind }))];
    }),
    words((left + width - right) / 2, height - 3, xName, "tick middle"));
}

/** Two lines of tokens and the links between them; `weight(source, target)` is from 0 to 1. */
export function ribbon(source, target, weight, { label, at, onpoint, width = 0 }) {
  const [pad, gap, tall, size] = [10, 4, 34, 15];
  const [top, bottom] = [2, 132];
  const laid = [source, target].map((labels) => {
    const wide = labels.map((one) => Math.max(24, widthOf(one, size) + pad));
    return { labels, wide, sum: wide.reduce((total, one) => total + one + gap, -gap) };
  });
  const whole = Math.max(width, ...laid.map(({ sum }) => sum + 4));
  const centres = laid.map(({ wide, sum }) => {
    let x = (whole - sum) / 2 - gap;
    return wide.map((one) => {
      x += one + gap;
      return x - one / 2;
    });
  });
  const isOn = (from, to) => at.place === (at.side === "source" ? from : to);
  const middle = (top + tall + bottom) / 2;
  const links = source.flatMap((_, from) => target.map((_, to) => {
    const value = weight(from, to);
    if (value < 0.04) return null;
    const [x1, x2] = [centres[0][from], centres[1][to]];
    return svg("path.link", {
      d: `M${x1} ${top + tall}C${x1} ${middle} ${x2} ${middle} ${x2} ${bottom}`,
      "stroke-width": 1 + 7 * value,
      opacity: at ? (isOn(from, to) ? 0.25 + 0.75 * value : 0.06) : 0.15 + 0.6 * value,
    });
  }));
  const line = (n, side, y) => laid[n].labels.map((name, place) => {
    const [wide, centre] = [laid[n].wide[place], centres[n][place]];
    const isChosen = at?.side === side && at.place === place;
    const value = !at || at.side === side ? 0
      : side === "source" ? weight(place, at.place) : weight(at.place, place);
    return svg("g", {
      class: isChosen ? "token chosen" : "token", "data-side": side, "data-place": place,
      onpointerenter: () => onpoint({ side, place }, false),
      onclick: () => onpoint({ side, place }, true),
    }, box(null, centre - wide / 2, y, wide, tall,
      { rx: 6, fill: value > 0.04 ? css(colourAt(value * 0.5)) : null }),
    words(centre, y + 22, name, "middle", { "font-size": size }));
  });
  return figure(whole, bottom + tall + 4, label, links, line(0, "source", top),
    line(1, "target", bottom));
}
