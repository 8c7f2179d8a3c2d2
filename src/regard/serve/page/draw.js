/** Figures in SVG: strips of numbers, bars, curves, ribbons. Every figure can be saved as a file. */
import { colourAt, css } from "./view/colours.js";

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value != null && value !== false) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** A figure with a name for those who cannot see it. */
export function figure(width, height, label, ...children) {
  const box = { viewBox: `0 0 ${width} ${height}`, width, height, class: "figure" };
  return svg("svg", { ...box, role: "img", "aria-label": label }, ...children);
}

export const words = (x, y, text, attributes = {}) => svg("text", { x, y, ...attributes }, text);

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
export function signedColour(value, limit, theme) {
  const { zero, less, more } = SIGNED[theme];
  const share = Math.min(Math.abs(value) / (limit || 1), 1) ** 0.75;
  const far = value < 0 ? less : more;
  return zero.map((channel, at) => Math.round(channel + (far[at] - channel) * share));
}

/** Rows of numbers as one picture, a pixel each, stretched; signed numbers have two colours. */
export function heat(rows, { x = 0, y = 0, width, height, theme, limit = null }) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [rows[0].length, rows.length];
  const paint = canvas.getContext("2d");
  const image = paint.createImageData(canvas.width, canvas.height);
  rows.flat().forEach((value, at) => {
    const colour = limit == null ? colourAt(value, theme) : signedColour(value, limit, theme);
    image.data.set([...colour, 255], 4 * at);
  });
  paint.putImageData(image, 0, 0);
  return svg(
    "g",
    {},
    svg("image", {
      x, y, width, height, href: canvas.toDataURL(), preserveAspectRatio: "none", class: "pixels",
    }),
    svg("rect", { x, y, width, height, class: "frame" }),
  );
}

export const largest = (rows) => Math.max(1e-9, ...rows.flat().map(Math.abs));

/** Labelled bars from 0 to `most`, one a line, with their numbers. */
export function bars(items, { label, theme, width = 360, most = 1, chosen = -1, digits = 3 }) {
  const line = 26;
  const names = Math.min(130, Math.max(30, ...items.map(([name]) => widthOf(name) + 10)));
  const room = width - names - 64;
  const lines = items.map(([name, value], at) => {
    const long = Math.max(0, Math.min(value / most, 1)) * room;
    const middle = at * line + line / 2;
    return svg(
      "g",
      { class: at === chosen ? "chosen" : null },
      svg("title", {}, `${name} ${value.toFixed(6)}`),
      words(names - 8, middle + 5, cut(name, names - 10), { "text-anchor": "end" }),
      svg("rect", { x: names, y: middle - 8, width: room, height: 16, class: "trough" }),
      svg("rect", {
        x: names, y: middle - 8, width: long, height: 16, rx: 1,
        fill: css(colourAt(0.35 + 0.5 * Math.min(value / most, 1), theme)),
      }),
      words(width - 58, middle + 5, value.toFixed(digits), { class: "number" }),
    );
  });
  return figure(width, items.length * line, label, ...lines);
}

const NICE = [1, 2, 2.5, 5, 10];
export function ticksOf(low, high, n = 5) {
  const raw = (high - low || 1) / n;
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

/** Curves over one axis; each has a name, points [x, y] and the number of its colour. */
export function curves(lines, { label, width = 640, height = 260, xName = "", mark = null, xTick = short }) {
  const [left, right, top, bottom] = [52, 26, 12, 36];
  const points = lines.flatMap((line) => line.points).filter(([, y]) => Number.isFinite(y));
  if (!points.length) return figure(width, height, label);
  const span = (at) => {
    const values = points.map((point) => point[at]);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return low === high ? [low - 0.5, high + 0.5] : [low, high];
  };
  const [[xLow, xHigh], [yLow, yHigh]] = [span(0), span(1)];
  const across = (x) => left + ((x - xLow) / (xHigh - xLow)) * (width - left - right);
  const up = (y) => height - bottom - ((y - yLow) / (yHigh - yLow)) * (height - top - bottom);
  const grid = ticksOf(yLow, yHigh).flatMap((y) => [
    svg("line", { x1: left, x2: width - right, y1: up(y), y2: up(y), class: "grid" }),
    words(left - 8, up(y) + 4, short(y), { "text-anchor": "end", class: "tick" }),
  ]);
  const below = ticksOf(xLow, xHigh, Math.max(2, width / 60)).map((x) =>
    words(across(x), height - bottom + 18, xTick(x), { "text-anchor": "middle", class: "tick" }),
  );
  const drawn = lines.map((line) => {
    const path = line.points
      .filter(([, y]) => Number.isFinite(y))
      .map(([x, y], at) => `${at ? "L" : "M"}${across(x).toFixed(1)} ${up(y).toFixed(1)}`);
    return svg("path", { d: path.join(""), class: `curve curve-${line.colour ?? 0}` });
  });
  const middle = words((left + width - right) / 2, height - 3, xName, {
    "text-anchor": "middle", class: "tick",
  });
  const at = mark == null ? [] : [
    svg("line", { x1: across(mark), x2: across(mark), y1: top, y2: height - bottom, class: "mark" }),
  ];
  return figure(width, height, label, ...grid, ...below, ...at, ...drawn, middle);
}

/** Two lines of tokens and the links between them; `weight(source, target)` is from 0 to 1. */
export function ribbon(source, target, weight, { label, theme, at, onpoint, width = 0 }) {
  const [pad, gap, tall, size] = [10, 4, 34, 15];
  const [top, bottom] = [2, 132];
  const laid = (labels) => {
    const wide = labels.map((one) => Math.max(24, widthOf(one, size) + pad));
    const sum = wide.reduce((total, one) => total + one + gap, -gap);
    return { wide, sum };
  };
  const lines = [laid(source), laid(target)];
  const whole = Math.max(width, lines[0].sum + 4, lines[1].sum + 4);
  const centres = lines.map(({ wide, sum }) => {
    let x = (whole - sum) / 2;
    return wide.map((one) => {
      const centre = x + one / 2;
      x += one + gap;
      return centre;
    });
  });
  const shown = (from, to) =>
    !at ? 0.55 : at.side === "source" ? Number(at.place === from) : Number(at.place === to);
  const links = [];
  source.forEach((_, from) =>
    target.forEach((_, to) => {
      const value = weight(from, to);
      if (value < 0.04) return;
      const [x1, x2] = [centres[0][from], centres[1][to]];
      const [y1, y2] = [top + tall, bottom];
      const middle = (y1 + y2) / 2;
      links.push(
        svg("path", {
          d: `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`,
          class: "link", "stroke-width": 1 + 7 * value,
          opacity: at ? (shown(from, to) ? 0.25 + 0.75 * value : 0.06) : 0.15 + 0.6 * value,
        }),
      );
    }),
  );
  const line = (labels, side, y) =>
    labels.map((name, place) => {
      const wide = lines[side === "source" ? 0 : 1].wide[place];
      const centre = centres[side === "source" ? 0 : 1][place];
      const isChosen = at?.side === side && at.place === place;
      const value = !at || at.side === side ? 0
        : side === "source" ? weight(place, at.place) : weight(at.place, place);
      const colour = colourAt(value * 0.5, theme);
      return svg(
        "g",
        {
          class: isChosen ? "token chosen" : "token", "data-side": side, "data-place": place,
          onpointerenter: () => onpoint({ side, place }, false),
          onclick: () => onpoint({ side, place }, true),
        },
        svg("rect", { x: centre - wide / 2, y, width: wide, height: tall, rx: 6,
          fill: value > 0.04 ? css(colour) : null }),
        words(centre, y + 22, name, { "text-anchor": "middle", "font-size": size }),
      );
    });
  return figure(
    whole, bottom + tall + 4, label, ...links, ...line(source, "source", top),
    ...line(target, "target", bottom),
  );
}
