/** The server's own API; whatever goes wrong becomes a Problem of a few kinds. */
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

/** The answer to a question, as JSON. `signal` cancels it: then nothing is thrown but AbortError. */
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
  const table = await response.json().catch(() => ({}));
  if (response.ok) return table;
  throw problemOf(response, table.error ?? {});
}

function problemOf(response, error) {
  const facts = typeof error === "string" ? { message: error } : { ...error };
  facts.wait = Number(response.headers.get("retry-after")) || 0;
  if (response.status === 429 || response.status === 503) {
    return new Problem("busy", { ...facts, wait: facts.wait || 2 });
  }
  if (response.status === 401 || response.status === 403) return new Problem("locked", facts);
  if (response.status === 413) return new Problem("long", facts);
  return new Problem("refused", facts);
}

const bytesOf = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

/** Rows of the numbers that travel as float32 in base64. */
export function rowsOf({ shape, float32 }) {
  const numbers = new Float32Array(bytesOf(float32).buffer);
  return Array.from({ length: shape[0] }, (_, row) =>
    Array.from(numbers.subarray(row * shape[1], (row + 1) * shape[1])),
  );
}
