/** What is seen, as files: one HTML page that needs nothing else, its figures, its numbers. */
import { button, drawer, element, said } from "./parts.js";
import { saveFile, saveRows } from "./view/files.js";

const INK = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size",
  "font-family", "font-weight", "text-anchor"];

/** A figure with the colours it has now, which a file by itself would not know. */
function standalone(figure) {
  const copy = figure.cloneNode(true);
  const [from, to] = [figure, copy].map((one) => [one, ...one.querySelectorAll("*")]);
  from.forEach((one, at) => {
    const style = getComputedStyle(one);
    for (const name of INK) to[at].setAttribute(name, style.getPropertyValue(name));
    to[at].removeAttribute("class");
  });
  return copy;
}

function asSvg(root) {
  const figures = [...root.querySelectorAll("svg.figure")].filter((one) => one.clientWidth);
  const sizes = figures.map((one) => one.viewBox.baseVal);
  const width = Math.max(0, ...sizes.map((one) => one.width)) + 32;
  const back = getComputedStyle(root.querySelector(".card")).backgroundColor;
  let y = 16;
  const parts = figures.map((one, at) => {
    const copy = standalone(one);
    copy.setAttribute("x", 16);
    copy.setAttribute("y", y);
    y += sizes[at].height + 24;
    return new XMLSerializer().serializeToString(copy);
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y}" `
    + `viewBox="0 0 ${width} ${y}">`
    + `<rect width="100%" height="100%" fill="${back}"/>${parts.join("")}</svg>\n`;
}

async function asHtml(app, root, name) {
  const styles = await Promise.all(["/page/view/attend.css", "/page/style.css"].map((path) =>
    fetch(path).then((answer) => answer.text())));
  const copy = root.cloneNode(true);
  const drawn = [...root.querySelectorAll("canvas")];
  copy.querySelectorAll("canvas").forEach((one, at) =>
    one.replaceWith(element("img", { src: drawn[at].toDataURL(), alt: "",
      width: drawn[at].clientWidth, height: drawn[at].clientHeight })));
  const fields = root.querySelectorAll("textarea, select");
  copy.querySelectorAll("textarea, select").forEach((one, at) =>
    one.replaceWith(element("p.held", one.matches("select")
      ? fields[at].selectedOptions[0]?.textContent ?? "" : fields[at].value)));
  for (const one of copy.querySelectorAll("button, input, [data-live]")) one.remove();
  copy.querySelectorAll("details").forEach((one) => one.open || one.remove());
  const policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";
  const foot = element("footer", `regard 顾 · ${location.href}`);
  // Put together as text: this page's own policy forbids even an unused style of another page.
  return `<!DOCTYPE html>
<html lang="${document.documentElement.lang}" data-theme="${app.reader.seen}">
<head><meta charset="utf-8"><title>${name}</title>
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>${styles.join("\n")}</style></head>
<body>${copy.outerHTML}${foot.outerHTML}</body></html>
`;
}

export function exportCard(app, root, name, rows) {
  const save = (ending, kind, make) => button(ending.toUpperCase(), async () =>
    saveFile(`${name}.${ending}`, kind, await make(app, root, name)));
  const made = drawer(said("export"), said("export_help"), element("div.row",
    save("html", "text/html", asHtml),
    save("svg", "image/svg+xml", (_, root) => asSvg(root)),
    button("CSV", () => saveRows(`${name}.csv`, rows()))));
  made.dataset.live = "";
  return made;
}
