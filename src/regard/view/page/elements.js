/** An element with attributes and children; text is text, whatever it looks like. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** A sentence of the dictionary with its holes filled. */
export function said(words, name, values = {}) {
  return words[name].replace(/\{(\w+)\}/g, (hole, key) => values[key] ?? hole);
}

/** Marks of one choice among several, side by side; arrow keys move, as in any radio group. */
export function choices(label, options, chosen, onChoose) {
  const buttons = options.map(([value, text, lang]) =>
    element(
      "button",
      {
        type: "button",
        role: "radio",
        lang,
        "aria-checked": String(value === chosen),
        tabindex: value === chosen ? "0" : "-1",
        onclick: () => onChoose(value),
      },
      text,
    ),
  );
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const place = buttons.indexOf(event.target) + step + buttons.length;
    onChoose(options[place % buttons.length][0]);
  };
  return element(
    "div",
    { role: "radiogroup", "aria-label": label, class: "choices", onkeydown: move },
    ...buttons,
  );
}
