/** Weights travel as base64 bytes, in 255ths: deflated in a file, plain where a server deflates. */
export async function unpacked(kind) {
  const bytes = Uint8Array.from(atob(kind.weights), (character) => character.charCodeAt(0));
  if (!kind.deflated) return bytes;
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(inflated).arrayBuffer());
}

/** Rows of weights by layer and head, both from 0; the head -1 is the mean of all. */
export function headOf({ bytes, heads, rows, columns }, layer, head) {
  const size = rows * columns;
  const weights = new Float32Array(size);
  const chosen = head < 0 ? [...Array(heads).keys()] : [head];
  for (const one of chosen) {
    const start = (layer * heads + one) * size;
    for (let at = 0; at < size; at++) weights[at] += bytes[start + at] / 255 / chosen.length;
  }
  return weights;
}
