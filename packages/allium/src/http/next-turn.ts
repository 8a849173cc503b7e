/** Waits for the event loop. */

/** Runs a function when sockets have had their turn. */
export const nextTurn: (fn: () => void) => unknown =
  (globalThis as { setImmediate?: (fn: () => void) => unknown }).setImmediate ?? ((fn) => setTimeout(fn, 0));
