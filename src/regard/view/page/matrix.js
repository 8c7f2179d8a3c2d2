/** One matrix: a canvas of cells, their labels, and a grid that keys and screen readers walk. */
import { colourAt, css, textOn } from "./colours.js";
import { element } from "./elements.js";

const SMALLEST = 22;
const LARGEST = [38, 48]; // of many rows, and of at most ...
const FEW = 14;
const PRINTED = 32; // cells from this size on have their number in them, ...
const WORTH_PRINTING = 0.05; // ... if it is one to speak of

export function matrixView({ label, onhover, onselect }) {
  const canvas = element("canvas", { "aria-hidden": "true" });
  const cell = element("div.cell", { role: "gridcell", id: "attend-cell" });
  const line = element("div", { role: "row" }, cell);
  const grid = element("div.cells", {
    role: "grid", tabindex: 0, "aria-label": label, "aria-activedescendant": cell.id,
    onpointermove: (event) => onhover(placeOf(event)),
    onpointerleave: () => onhover(null),
    onclick: (event) => placeOf(event) && onselect(placeOf(event)),
  }, line);
  const keys = element("div.keys", { "aria-hidden": "true" });
  const queries = element("div.queries", { "aria-hidden": "true" });
  const sheet = element("div.sheet", element("div.corner"), keys, queries,
    element("div.paper", canvas, grid));
  const scroller = element("div.scroller", sheet);
  let size = SMALLEST;
  let shown = null;

  function placeOf(event) {
    const box = grid.getBoundingClientRect();
    const { length: rows } = shown.view.queries;
    const { length: columns } = shown.view.keys;
    const row = Math.floor((event.clientY - box.top) / box.height * rows);
    const column = Math.floor((event.clientX - box.left) / box.width * columns);
    const isInside = row >= 0 && column >= 0 && row < rows && column < columns;
    return isInside ? { row, column } : null;
  }

  function labels(parent, units, onplace) {
    parent.replaceChildren(...units.map((unit, place) =>
      element("span", {
        title: unit.label,
        onpointerenter: () => onhover(onplace(place)),
        onpointerleave: () => onhover(null),
        onclick: () => onselect(onplace(place)),
      }, element("span", unit.label))));
  }

  function measure() {
    const { view } = shown;
    const room = scroller.clientWidth - queries.offsetWidth - 1;
    const largest = LARGEST[Number(view.queries.length <= FEW)];
    size = Math.min(largest, Math.max(SMALLEST, Math.floor(room / view.keys.length)));
    sheet.style.setProperty("--cell", `${size}px`);
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    for (const [side, units] of [["width", view.keys], ["height", view.queries]]) {
      canvas.style[side] = `${units.length * size}px`;
      canvas[side] = units.length * size * scale;
    }
    return scale;
  }

  function draw() {
    const { view, at, ink, muted } = shown;
    const scale = measure();
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.font = `${Math.round(size * 0.29)}px system-ui, sans-serif`;
    view.weights.forEach((weights, row) => weights.forEach((weight, column) => {
      const [x, y] = [column * size, row * size];
      if (!view.canSee(row, column)) {
        hatch(pen, x, y, muted);
        return;
      }
      const colour = colourAt(weight);
      pen.fillStyle = css(colour);
      pen.fillRect(x + 0.5, y + 0.5, size - 1, size - 1);
      if (size < PRINTED || weight < WORTH_PRINTING) return;
      pen.fillStyle = textOn(colour);
      pen.fillText(weight.toFixed(2), x + size / 2, y + size / 2 + 0.5);
    }));
    pen.strokeStyle = ink;
    pen.lineWidth = 1.5;
    pen.strokeRect(0.75, at.row * size + 0.75, view.keys.length * size - 1.5, size - 1.5);
    pen.lineWidth = 0.75;
    const height = view.queries.length * size;
    pen.strokeRect(at.column * size + 0.4, 0.4, size - 0.8, height - 0.8);
  }

  /** Rising lines where nothing can be seen, so that it is not told by colour alone. */
  function hatch(pen, x, y, muted) {
    pen.strokeStyle = muted;
    pen.lineWidth = 0.7;
    pen.beginPath();
    pen.moveTo(x, y + size);
    pen.lineTo(x + size, y);
    pen.stroke();
  }

  new ResizeObserver(() => shown && draw()).observe(scroller);

  return {
    root: scroller,
    grid,
    /** Shows a view; `at` is the cell that is looked at, `spoken` what a reader says of it. */
    update(view, { at, spoken }) {
      const isNew = shown?.view !== view;
      const here = shown?.at;
      shown = { view, at, ink: getComputedStyle(scroller).color,
        muted: getComputedStyle(keys).color };
      if (isNew) {
        labels(keys, view.keys, (column) => ({ row: shown.at.row, column, side: "keys" }));
        labels(queries, view.queries, (row) => ({ row, column: shown.at.column, side: "queries" }));
        grid.setAttribute("aria-rowcount", view.queries.length);
        grid.setAttribute("aria-colcount", view.keys.length);
      }
      [...keys.children].forEach((one, n) => one.classList.toggle("on", n === at.column));
      [...queries.children].forEach((one, n) => one.classList.toggle("on", n === at.row));
      draw();
      line.setAttribute("aria-rowindex", at.row + 1);
      cell.setAttribute("aria-colindex", at.column + 1);
      cell.setAttribute("aria-label", spoken);
      cell.style.transform = `translate(${at.column * size}px, ${at.row * size}px)`;
      if (here && document.activeElement === grid) {
        const left = at.column * size;
        const end = left + size + queries.offsetWidth - scroller.clientWidth;
        scroller.scrollLeft = Math.max(Math.min(scroller.scrollLeft, left), end);
      }
    },
  };
}
