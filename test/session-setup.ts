/** What the tests of session begin with. */
import { z } from 'zod';
import { type Entry, type Store, tool } from '../packages/allium/src/index.js';

export const echo = tool({
  name: 'echo',
  description: 'Says it again.',
  input: z.object({ say: z.string() }),
  execute: ({ say }) => say,
});

/** Ids that count up, so that two runs of the same script are comparable. */
export function counting(): () => string {
  let n = 0;
  return () => `id${++n}`;
}

export async function entriesOf(store: Store, id: string): Promise<readonly Entry[]> {
  return store.read(id, 1);
}

/** A store that answers with promises, as those over a network do. */
export function answeringLater(store: Store): Store {
  return new Proxy(store, {
    get:
      (target, key) =>
      async (...args: never[]) =>
        ((target as never)[key as never] as (...all: never[]) => unknown).apply(target, args),
  });
}
