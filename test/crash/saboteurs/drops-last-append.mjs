// Confirms an append while it is still only in memory; the next one writes it. What was last confirmed dies with the
// process.

/** @import { Store } from 'allium' */

/** @returns {Store} */
export default function dropsLastAppend(/** @type {Store} */ store) {
  /** @type {Parameters<Store['append']> | undefined} */
  let held;
  const flush = async () => {
    const last = held;
    held = undefined;
    if (last) await store.append(...last);
  };
  /** @type {Partial<Store>} */
  const worse = {
    async append(sessionId, expectedSeq, entries) {
      await flush();
      held = [sessionId, expectedSeq, structuredClone(entries)];
      return expectedSeq + entries.length;
    },
    async read(sessionId, fromSeq) {
      await flush();
      return store.read(sessionId, fromSeq);
    },
  };
  return new Proxy(store, {
    get: (_, name) =>
      Reflect.get(worse, name) ?? /** @type {Function} */ (Reflect.get(store, name))?.bind(store),
  });
}
