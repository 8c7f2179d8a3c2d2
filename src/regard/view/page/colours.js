/** The colours of weights, in equal steps for the eye: the same as in colours.py. */
export const RAMPS = {
  light: [
    "#fbfaf7", "#ecf0d7", "#d3e5c2", "#b7dab6", "#99ceb1", "#7bc1af", "#60b4ae", "#47a5ac",
    "#3495a9", "#2884a4", "#24739e", "#256295", "#265189", "#27407b", "#25316c", "#22215c",
    "#1d124b",
  ],
  dark: [
    "#1b1e24", "#21273c", "#273253", "#2a3f68", "#294f79", "#245f87", "#1d7192", "#15829a",
    "#1793a0", "#27a4a3", "#3fb4a3", "#5ac2a1", "#79d09f", "#99dd9d", "#bbe89e", "#dcf1a1",
    "#fbfbab",
  ],
};

const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

let theme = "light";

/** From now on figures are drawn for this theme. */
export const drawFor = (name) => {
  theme = name;
};

/** What a table has for the theme. */
export const themed = (table) => table[theme];

/** Red, green and blue of a weight from 0 to 1. */
export function colourAt(weight) {
  const ramp = themed(RAMPS);
  const place = Math.min(Math.max(weight, 0), 1) * (ramp.length - 1);
  const below = Math.min(Math.floor(place), ramp.length - 2);
  const [low, high] = [channels(ramp[below]), channels(ramp[below + 1])];
  return low.map((value, n) => Math.round(value + (high[n] - value) * (place - below)));
}

export const css = ([red, green, blue]) => `rgb(${red} ${green} ${blue})`;

/** Black or white, whichever is better read on a colour. */
export function textOn(colour) {
  const [red, green, blue] = colour.map((channel) => {
    const value = channel / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}

/** Rows of numbers as a canvas, a pixel each; `colour` is that of a weight if none is given. */
export function painted(rows, colour = colourAt) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [rows[0].length, rows.length];
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(canvas.width, canvas.height);
  rows.flat().forEach((value, at) => image.data.set([...colour(value), 255], 4 * at));
  pen.putImageData(image, 0, 0);
  canvas.setAttribute("aria-hidden", "true");
  return canvas;
}
