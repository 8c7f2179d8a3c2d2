/** The server's own API; whatever goes wrong becomes a Problem of a few kinds. */
import { bytesOf, headOf, inRows } from "./view/weights.js";

export class Problem extends Error {
  constructor(kind, { message = "", message_zh = message, wait = 0 } = {}) {
    super(message);
    Object.assign(this, { kind, message_zh, wait });
  }
}

let key = "";
export const useKey = (given) => {
  key = given;
};

/** The answer to a question, as JSON. `signal` cancels it: then an AbortError is thrown. */
export async function ask(path, body, signal) {
  const options = { signal, headers: key ? { authorization: `Bearer ${key}` } : {} };
  if (body instanceof FormData) Object.assign(options, { method: "POST", body });
  else if (body !== undefined) {
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
    options.headers["content-type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    throw error.name === "AbortError" ? error : new Problem("gone");
  }
  const table = await response.json().catch((error) => {
    if (error.name === "AbortError") throw error; // given up while the answer came in
    return {};
  });
  if (response.ok) return table;
  throw problemOf(response, table.error ?? {});
}

const KINDS = { 401: "locked", 403: "locked", 413: "long", 429: "busy", 503: "busy" };

function problemOf(response, error) {
  const facts = typeof error === "string" ? { message: error } : error;
  const wait = Number(response.headers.get("retry-after")) || 2;
  return new Problem(KINDS[response.status] ?? "refused", { ...facts, wait });
}

/** Rows of the numbers that travel as float32 in base64. */
export const rowsOf = ({ shape, float32 }) =>
  inRows(new Float32Array(bytesOf(float32).buffer), shape[1]);

/** The weights of one kind of attention, as `headOf` takes them. */
export const kindOf = ({ shape: [layers, heads, rows, columns], uint8 }) =>
  ({ layers, heads, rows, columns, bytes: bytesOf(uint8) });

/** The cross-attention of the last layer, the mean of its heads. */
export const lastMean = ({ weights: { cross } }) => headOf(kindOf(cross), cross.shape[0] - 1, -1);
