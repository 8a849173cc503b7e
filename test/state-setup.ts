// What tests of state cells share: cells, tools, and stores that can be read.

import { defineState, memoryStore, type Store, tool } from 'allium';
import { vi } from 'vitest';
import { z } from 'zod';

export const counter = (scope: 'call' | 'run' | 'session' = 'session') =>
  defineState({ name: 'count', scope, initial: 0 });
export const increment = (value: number) => value + 1;
export const noop = (name: string, execute: () => unknown = () => name) =>
  tool({ name, description: name, input: z.object({}), execute });

export async function journal(store: Store, sessionId = 's'): Promise<string[]> {
  const entries = await store.read(sessionId, 1);
  return entries.map((entry) => {
    if (entry.type === 'state') return `state ${entry.cell}=${JSON.stringify(entry.value)}`;
    if (entry.type === 'message') return entry.message.role;
    return entry.type;
  });
}

/** A store that notes what each append carried. */
export function recording(): { store: Store; appends: string[][] } {
  const store = memoryStore();
  const appends: string[][] = [];
  const append = store.append.bind(store);
  vi.spyOn(store, 'append').mockImplementation((sessionId, seq, entries) => {
    appends.push(entries.map((entry) => (entry.type === 'message' ? entry.message.role : entry.type)));
    return append(sessionId, seq, entries);
  });
  return { store, appends };
}
