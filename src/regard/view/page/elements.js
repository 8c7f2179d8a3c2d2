/** An element: "p.note" is a p of the class note. Attributes, if any, stand before the children. */
export const element = (name, ...parts) => built((tag) => document.createElement(tag), name, parts);

/** Text is text, whatever it looks like; a child that is null or false is left out. */
export function built(create, name, [first, ...rest]) {
  const [tag, ...classes] = name.split(".");
  const made = create(tag);
  const hasAttributes = first?.constructor === Object;
  const attributes = { class: classes.join(" ") || null, ...(hasAttributes && first) };
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value != null) made.setAttribute(key, value);
  }
  const children = hasAttributes ? rest : [first, ...rest];
  made.append(...children.flat().filter((child) => child != null && child !== false));
  return made;
}

let dictionary = {};

/** From now on the page speaks in these words. */
export const speak = (words) => {
  dictionary = words;
};

/** What the dictionary has under a name. */
export const entry = (name) => dictionary[name];

/** A sentence of the dictionary with its holes filled. */
export const said = (name, values = {}) =>
  dictionary[name].replace(/\{(\w+)\}/g, (hole, key) => values[key] ?? hole);

export const range = (length) => Array.from({ length }, (_, n) => n);

/** The nearest place of n places, counted from 0. */
export const within = (place, n) => Math.min(Math.max(place, 0), n - 1);

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** Calls `move(down, right)` if an arrow key was pressed; then nobody else hears of it. */
export function onArrow(event, move) {
  if (!ARROWS[event.key]) return;
  event.preventDefault();
  event.stopPropagation();
  move(...ARROWS[event.key]);
}
