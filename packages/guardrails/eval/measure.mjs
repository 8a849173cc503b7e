// Precision, recall and speed of a detector on labelled texts.

/**
 * @typedef {{ start: number, end: number, kind: string }} Labelled
 * @typedef {{ text: string, spans: readonly Labelled[] }} Sample
 */

/**
 * A label counts as found if one span covers all of it: what sticks out would have passed. A span that touches no label is a
 * false alarm.
 *
 * @param {readonly Sample[]} corpus
 * @param {(text: string) => readonly Labelled[]} detect
 */
export function measure(corpus, detect) {
  let [found, missed, wrong] = [0, 0, 0];
  /** @type {{ missed?: string, wrong?: string }[]} */
  const mistakes = [];
  for (const { text, spans } of corpus) {
    const merged = merge(detect(text));
    for (const label of spans) {
      if (merged.some(({ start, end }) => start <= label.start && end >= label.end)) found++;
      else {
        missed++;
        mistakes.push({ missed: text });
      }
    }
    for (const span of merged) {
      if (spans.some(({ start, end }) => span.start < end && span.end > start)) continue;
      wrong++;
      mistakes.push({ wrong: `${text.slice(span.start, span.end)} in: ${text}` });
    }
  }
  const precision = found + wrong === 0 ? 1 : found / (found + wrong);
  const recall = found + missed === 0 ? 1 : found / (found + missed);
  const f1 = precision + recall === 0 ? 0 : (2 * precision * recall) / (precision + recall);
  return {
    texts: corpus.length,
    labels: found + missed,
    found,
    missed,
    wrong,
    precision,
    recall,
    f1,
    mistakes,
  };
}

/** @param {readonly Labelled[]} spans */
function merge(spans) {
  const sorted = [...spans].sort((a, b) => a.start - b.start);
  /** @type {{ start: number, end: number }[]} */
  const made = [];
  for (const { start, end } of sorted) {
    const last = made.at(-1);
    if (last && start < last.end) last.end = Math.max(last.end, end);
    else made.push({ start, end });
  }
  return made;
}

/** Megabytes per second of processor time, the best of three. */
export function speed(corpus, detect, atLeast = 4_000_000) {
  const once = corpus.map(({ text }) => text).join('\n');
  let text = once;
  while (text.length < atLeast) text += `\n${once}`;
  let best = 0;
  for (let round = 0; round < 3; round++) {
    const started = process.cpuUsage();
    detect(text);
    const { user, system } = process.cpuUsage(started);
    best = Math.max(best, text.length / (user + system));
  }
  return best;
}
