/** What is chosen, all of it in the address: a link shows another person the same thing. */
export const START = {
  mode: "work", step: 1, text: "", from: "", to: "", model: "",
  kind: "cross", layer: null, head: -1, row: 0, column: null, words: false, sinks: false,
  scale: true, mask: true, temperature: 1, d: 64, pads: 2, place: 8, shuffle: 0,
  beam: 4, prefix: "", node: "", run: 0, snapshot: 1e4, sample: 1e4,
};
export const MODES = ["work", "learn", "training"];
const FROM_ONE = ["layer", "head", "row", "column"]; // people count from 1
const LONGEST = 500; // characters of a text that fit into an address
const LIMITS = { step: [1, 10], temperature: [0.1, 10], d: [1, 512], pads: [0, 6], place: [0, 47],
  beam: [1, 8] };

export function stateOf(hash) {
  const state = { ...START };
  for (const [name, text] of new URLSearchParams(hash.replace(/^#/, ""))) {
    const first = START[name];
    if (first === undefined) continue;
    if (typeof first === "string") state[name] = text;
    else if (typeof first === "boolean") state[name] = text === "1";
    else if (Number.isFinite(Number(text))) {
      const [least, most] = LIMITS[name] ?? [-1, 1e4];
      state[name] = Math.min(Math.max(Number(text) - FROM_ONE.includes(name), least), most);
    }
  }
  if (!MODES.includes(state.mode)) state.mode = "work";
  return state;
}

export function hashOf(state) {
  const address = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (value === START[name] || value == null || START[name] === undefined) continue;
    if (typeof value === "boolean") address.set(name, value ? "1" : "0");
    else if (typeof value === "number") address.set(name, value + FROM_ONE.includes(name));
    else if (value.length <= LONGEST) address.set(name, value);
  }
  return `#${address}`;
}
