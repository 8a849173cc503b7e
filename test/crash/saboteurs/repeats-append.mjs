// Writes its fourth append twice, as a client does that repeats a request whose answer got lost, and hides that from
// the process it serves.

/** @import { Store } from 'allium' */

/** @returns {Store} */
export default function repeatsAppend(/** @type {Store} */ store) {
  let count = 0;
  let more = 0;
  /** @type {Partial<Store>} */
  const worse = {
    async append(sessionId, expectedSeq, entries) {
      const last = await store.append(sessionId, expectedSeq + more, entries);
      if (++count === 4) {
        await store.append(sessionId, last, entries);
        more += entries.length;
      }
      return expectedSeq + entries.length;
    },
  };
  return new Proxy(store, {
    get: (_, name) =>
      Reflect.get(worse, name) ?? /** @type {Function} */ (Reflect.get(store, name))?.bind(store),
  });
}
