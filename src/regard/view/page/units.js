/** Pieces as units: each by itself, or joined to words. A unit has a label, a place and a size. */
export function unitsOf(side) {
  let start = 0;
  return side.labels.map((label, place) => {
    const unit = { label, start, size: side.sizes[place], isSink: Boolean(side.sinks[place]) };
    start += unit.size;
    return unit;
  });
}

/** Weights of pieces as weights of units: summed over keys, averaged over queries. */
export function merged(weights, queries, keys) {
  return queries.map((query) =>
    keys.map((key) => {
      let sum = 0;
      for (const row of weights.slice(query.start, query.start + query.size)) {
        for (const weight of row.slice(key.start, key.start + key.size)) sum += weight;
      }
      return sum / query.size;
    }));
}

/** What is shown: the rows and columns that are left, and the share of what was left out. */
export function viewOf(weights, queries, keys, { isCausal, hidesSinks }) {
  const hides = hidesSinks && !keys.every((key) => key.isSink);
  const shown = keys.filter((key) => !(hides && key.isSink));
  const sinks = keys.filter((key) => hides && key.isSink);
  const shares = new Map();
  const onSinks = merged(weights, queries, sinks);
  sinks.forEach((sink, place) => {
    const share = onSinks.reduce((sum, row) => sum + row[place], 0) / queries.length;
    shares.set(sink.label, (shares.get(sink.label) ?? 0) + share);
  });
  return {
    queries,
    keys: shown,
    weights: merged(weights, queries, shown),
    canSee: (row, column) =>
      !isCausal || shown[column].start < queries[row].start + queries[row].size,
    hidden: [...shares].sort(([, one], [, other]) => other - one),
  };
}

/** The unit that holds a piece, or the nearest that is shown. */
export function placeOf(units, piece) {
  const place = units.findIndex((unit) => piece < unit.start + unit.size);
  return place < 0 ? units.length - 1 : place;
}

/** The places of the largest weights, the largest first; a small one only by itself. */
export function strongest(weights, most = 3, least = 0.05) {
  return weights
    .map((weight, place) => [weight, place])
    .sort(([one], [other]) => other - one)
    .slice(0, most)
    .filter(([weight], rank) => weight >= (rank ? least : 0.005))
    .map(([, place]) => place);
}
