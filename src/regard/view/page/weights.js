/** Weights travel as base64 bytes, in 255ths: deflated in a file, plain where a server deflates. */
export const bytesOf = (text) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));

async function unpacked(kind) {
  const bytes = bytesOf(kind.weights);
  if (!kind.deflated) return bytes;
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(inflated).arrayBuffer());
}

/** Numbers that stand behind one another, as rows. */
export const inRows = (numbers, columns) =>
  Array.from({ length: numbers.length / columns }, (_, row) =>
    Array.from(numbers.subarray(row * columns, (row + 1) * columns)));

/** Rows of weights by layer and head, both from 0; the head -1 is the mean of all. */
export function headOf({ bytes, heads, rows, columns }, layer, head) {
  const weights = new Float32Array(rows * columns);
  const chosen = head < 0 ? [...Array(heads).keys()] : [head];
  for (const one of chosen) {
    const start = (layer * heads + one) * weights.length;
    weights.forEach((_, at) => {
      weights[at] += bytes[start + at] / 255 / chosen.length;
    });
  }
  return inRows(weights, columns);
}

/** The kinds of attention with their bytes, ready to be shown. */
export async function loaded(data) {
  const kinds = {};
  for (const [name, kind] of Object.entries(data.kinds)) {
    const [rows, columns] = [kind.queries, kind.keys].map((side) =>
      data.sides[side].pieces.labels.length);
    kinds[name] = { ...kind, rows, columns, bytes: await unpacked(kind) };
  }
  return { ...data, kinds };
}
