// Stores that are troublesome but right: everything they are asked for is done once or not at all. Runs on them fail now
// and then, and nothing may be wrong afterwards.

/** @import { Store } from 'allium' */

/** What a store does to one append: `ms` before it is made, then its answer comes, fails, or never comes. */
/** @typedef {{ ms: number, answer: 'right' | 'error' | 'none', made: boolean }} Mood */

/** @type {Record<string, (random: () => number) => Mood>} */
export const TROUBLES = {
  /** Takes its time. */
  slow: (random) => ({ ms: random() * 40, answer: 'right', made: true }),
  /** Says that it failed; half of the time that is not true. */
  late: (random) => ({
    ms: random() * 20,
    answer: random() < 0.12 ? 'error' : 'right',
    made: random() < 0.5,
  }),
  /** Does not answer, and does what it was asked for much later, or never. */
  silent: (random) => (random() < 0.08 ? { ms: random() * 400, answer: 'none', made: random() < 0.5 } : FINE),
};

/** @type {Mood} */
const FINE = { ms: 0, answer: 'right', made: true };

/** How long runs wait for such a store. */
export const TROUBLED_TIMEOUT_MS = 150;

/** @returns {Store} */
export function troubled(
  /** @type {Store} */ store,
  /** @type {string} */ name,
  /** @type {() => number} */ random,
) {
  const mood = TROUBLES[name];
  if (!mood) throw new Error(`Expected --trouble to be ${Object.keys(TROUBLES).join(', ')}, got ${name}.`);
  /** @type {Store['append']} */
  const append = async (...args) => {
    const { ms, answer, made } = mood(random);
    const copy = /** @type {typeof args} */ (structuredClone(args));
    await new Promise((resolve) => setTimeout(resolve, ms));
    const seq = answer === 'right' || made ? await store.append(...copy) : 0;
    if (answer === 'error') throw new Error('The connection was lost.');
    return answer === 'none' ? new Promise(() => {}) : seq;
  };
  return new Proxy(store, {
    get: (_, key) =>
      key === 'append' ? append : /** @type {Function} */ (Reflect.get(store, key))?.bind(store),
  });
}
