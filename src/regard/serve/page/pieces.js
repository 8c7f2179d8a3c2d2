/** Pieces as a person reads them, one by one or joined to words, as the panel takes them. */
const BYTE = /^<0x[0-9A-Fa-f]{2}>$/;
const SPECIAL = /^(<[^<>]+>|>>[^<>]+<<)$/;
const UNSHOWN = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const LETTER = /[\p{L}\p{M}\p{N}]/u;
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;

export const isSpecial = (piece) => SPECIAL.test(piece) && !BYTE.test(piece);
const plain = (piece) => (isSpecial(piece) ? piece : piece.replaceAll("▁", " "));
const isLetter = (sign) => Boolean(sign) && LETTER.test(sign) && !UNSPACED.test(sign);
const saysNothing = (text) => /^[\p{P}\p{Z}]*$/u.test(text);

/** Whether a piece goes on with the word of the piece before it. */
function joins(before, piece) {
  if (before === undefined || isSpecial(before) || isSpecial(piece)) return false;
  if (!plain(before).trim()) return true; // a space belongs to the word behind it
  return isLetter([...plain(before)].at(-1)) && isLetter([...plain(piece)][0]);
}

/** The label of each piece; one inside a word begins with a dot. */
export function labelsOf(pieces) {
  return pieces.map((piece, place) => {
    const text = plain(piece).trim().replace(UNSHOWN, "\ufffd") || "␣";
    const before = pieces[place - 1];
    const isPart = joins(before, piece) && plain(before).trim() && isLetter([...text][0]);
    return isPart ? `⋅${text}` : text;
  });
}

/** One side of the panel: labels, sizes and sinks of pieces and of words. */
export function sideOf(pieces) {
  const labels = labelsOf(pieces);
  const sinks = pieces.map((piece) => Number(isSpecial(piece) || saysNothing(plain(piece))));
  const words = { labels: [], sizes: [], sinks: [] };
  pieces.forEach((piece, place) => {
    if (joins(pieces[place - 1], piece)) {
      const last = words.labels.length - 1;
      const before = words.labels[last] === "␣" ? "" : words.labels[last];
      words.labels[last] = before + labels[place].replace(/^⋅/, "");
      words.sizes[last] += 1;
      words.sinks[last] &= sinks[place];
    } else {
      words.labels.push(labels[place]);
      words.sizes.push(1);
      words.sinks.push(sinks[place]);
    }
  });
  return { pieces: { labels, sizes: pieces.map(() => 1), sinks }, words };
}

/** The text that pieces stand for. */
export const textOf = (pieces) =>
  pieces.filter((piece) => !isSpecial(piece)).map(plain).join("").trim();

/** Where each piece stands in a text: [start, end] or null; several pieces may follow a gap. */
export function placesOf(pieces, text) {
  let from = 0;
  return pieces.map((piece) => {
    const said = isSpecial(piece) ? "" : plain(piece).trim();
    const start = said ? text.indexOf(said, from) : -1;
    if (start < 0) return null;
    from = start + said.length;
    return [start, from];
  });
}
