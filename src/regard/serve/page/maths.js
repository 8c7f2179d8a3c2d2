/** Attention recomputed in the browser, in float64, from the model's own float32 numbers. */
export function dot(one, other) {
  let sum = 0;
  for (let at = 0; at < one.length; at++) sum += one[at] * other[at];
  return sum;
}

/** Weights of scores; -Infinity weighs exactly 0, and a row of nothing else is all zeros. */
export function softmax(scores) {
  const largest = Math.max(...scores);
  if (largest === -Infinity) return scores.map(() => 0);
  const powers = scores.map((score) => Math.exp(score - largest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

/** In bits: 0 if all is on one key, log2 n if it is spread over n keys alike. */
export const entropy = (weights) =>
  weights.reduce((sum, weight) => sum - (weight > 0 ? weight * Math.log2(weight) : 0), 0);

/** The steepest slope of softmax that is left: the largest of w (1 - w). */
export const slope = (weights) => Math.max(...weights.map((weight) => weight * (1 - weight)));

/** softmax((q k^T * scale + mask) / temperature) of one query. */
export function weigh(query, keys, { scale = 1, canSee = () => true, temperature = 1 } = {}) {
  const raw = keys.map((key) => dot(query, key));
  const scores = raw.map((score, at) =>
    canSee(at) ? (score * scale) / temperature : -Infinity,
  );
  return { raw, scores, weights: softmax(scores) };
}

/** The score functions of the notes, each of a query and a key of one width. */
export const SCORES = {
  gaussian: (query, key) => {
    const square = query.reduce((sum, value, at) => sum + (value - key[at]) ** 2, 0);
    return (-0.5 * square) / Math.sqrt(query.length); // w² = 1 / √d
  },
  additive: (query, key) => {
    const width = 16;
    const draw = normals(7);
    let score = 0;
    for (let unit = 0; unit < width; unit++) {
      let sum = 0;
      for (let at = 0; at < query.length; at++) sum += draw() * query[at] + draw() * key[at];
      score += draw() * Math.tanh(sum / Math.sqrt(query.length));
    }
    return score;
  },
  dot,
  scaled_dot: (query, key) => dot(query, key) / Math.sqrt(query.length),
  cosine: (query, key) =>
    dot(query, key) / (Math.sqrt(dot(query, query) * dot(key, key)) || 1),
};

/** Draws from the standard normal distribution, the same for the same seed. */
export function normals(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** p(i, 2j) = sin(i / 10000^(2j/d)), p(i, 2j+1) = cos of the same. */
export function sinusoids(n, d) {
  return Array.from({ length: n }, (_, place) =>
    Array.from({ length: d }, (_, at) => {
      const angle = place / 10000 ** ((at - (at % 2)) / d);
      return at % 2 ? Math.cos(angle) : Math.sin(angle);
    }),
  );
}

function ranks(values) {
  const order = values.map((value, at) => [value, at]).sort(([one], [other]) => one - other);
  const ranked = Array(values.length);
  for (let start = 0, end; start < order.length; start = end) {
    for (end = start; end < order.length && order[end][0] === order[start][0]; ) end++;
    for (let at = start; at < end; at++) ranked[order[at][1]] = (start + end - 1) / 2;
  }
  return ranked;
}

/** Spearman's ρ, with equal values at their middle rank; null where one side is all alike. */
export function agreement(one, other) {
  const centred = (values) => {
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    return values.map((value) => value - mean);
  };
  const [left, right] = [centred(ranks(one)), centred(ranks(other))];
  const size = Math.sqrt(dot(left, left) * dot(right, right));
  return size ? dot(left, right) / size : null;
}
