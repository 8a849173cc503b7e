import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { NewEntry } from '../kernel/protocol/store.js';
import { fileStore } from './file/index.js';
import type { SyncStore } from './kit/index.js';
import { memoryStore } from './memory/index.js';
import { sqliteStore } from './sqlite/index.js';

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'allium-like-memory-'));
afterAll(() => fs.rmSync(root, { recursive: true }));

const STORES: Record<string, (folder: string) => SyncStore> = {
  file: (folder) => fileStore({ dir: folder }),
  sqlite: (folder) => sqliteStore({ path: path.join(folder, 'sessions.db') }),
};

type Step =
  | {
      readonly do: 'append';
      readonly id: string;
      readonly off: number;
      readonly count: number;
      readonly at: number;
    }
  | { readonly do: 'start'; readonly id: string; readonly tenant: string | undefined; readonly at: number }
  | { readonly do: 'read'; readonly id: string; readonly from: number }
  | {
      readonly do: 'list';
      readonly tenant: string | undefined;
      readonly since: number | undefined;
      readonly limit: number;
    }
  | { readonly do: 'fork'; readonly id: string; readonly seq: number; readonly to: string }
  | { readonly do: 'delete' | 'post'; readonly id: string }
  | { readonly do: 'take'; readonly id: string; readonly after: number }
  | { readonly do: 'reopen'; readonly handle: number };

const id = fc.constantFrom('a', 'A', 'a/b');
const tenant = fc.constantFrom('t', 'u', undefined);
const at = fc.integer({ min: 1, max: 5 });
// Mostly at the right place, sometimes beside it.
const off = fc.constantFrom(0, 0, 0, 0, 0, 0, -1, 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('append' as const), id, off, count: fc.nat(3), at }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('start' as const), id, tenant, at }) },
  fc.record({ do: fc.constant('read' as const), id, from: fc.nat(9) }),
  fc.record({
    do: fc.constant('list' as const),
    tenant,
    since: fc.option(at, { nil: undefined }),
    limit: fc.integer({ min: 1, max: 3 }),
  }),
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('fork' as const),
      id,
      seq: fc.integer({ min: 0, max: 4 }),
      to: id,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('delete' as const, 'post' as const, 'post' as const), id }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('take' as const), id, after: fc.nat(5) }) },
  fc.record({ do: fc.constant('reopen' as const), handle: fc.nat(1) }),
);

/** What a step answers, or the code of what it throws. Sessions of the same time may come in any order. */
function answer(store: SyncStore, step: Step, n: number): unknown {
  try {
    switch (step.do) {
      case 'append': {
        const entries = Array.from(
          { length: step.count },
          (_, i): NewEntry => ({ v: 1, at: step.at, type: 'state', cell: `${n}.${i}`, version: 1, value: n }),
        );
        return store.append(step.id, Math.max(0, store.head(step.id) + step.off), entries);
      }
      case 'start':
        return store.append(step.id, store.head(step.id), [
          {
            v: 1,
            at: step.at,
            type: 'run_start',
            runId: `${n}`,
            plan: [],
            ...(step.tenant && { tenant: step.tenant }),
          },
        ]);
      case 'read':
        return store.read(step.id, step.from);
      case 'list': {
        const sessions = [];
        let cursor: string | undefined;
        do {
          const page = store.list({
            limit: step.limit,
            ...(step.tenant && { tenant: step.tenant }),
            ...(step.since && { since: step.since }),
            ...(cursor && { cursor }),
          });
          sessions.push(...page.sessions);
          cursor = page.next;
        } while (cursor !== undefined);
        expect(sessions.map(({ updatedAt }) => updatedAt)).toEqual(
          sessions
            .map(({ updatedAt }) => updatedAt)
            .sort()
            .reverse(),
        );
        return sessions.sort((a, b) => (a.sessionId < b.sessionId ? -1 : 1));
      }
      case 'fork':
        return store.fork(step.id, step.seq, step.to);
      case 'delete':
        return store.delete(step.id);
      case 'post':
        return store.post(step.id, { type: 'cancel', reason: `${n}` });
      case 'take':
        return store.take(step.id, step.after);
      case 'reopen':
        return undefined;
    }
  } catch (error) {
    return (error as { code?: unknown }).code ?? error;
  }
}

describe.each(Object.keys(STORES))('%s store, used through two handles in any order', (kind) => {
  let run = 0;
  it('answers every step as the memory store does', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(step, fc.nat(1)), { minLength: 20, maxLength: 60, size: 'max' }),
        (steps) => {
          const folder = path.join(root, `${kind}-${run++}`);
          const open = () => STORES[kind]!(folder);
          const handles = [open(), open()];
          const reference = memoryStore();
          for (const [n, [step, which]] of steps.entries()) {
            if (step.do === 'reopen') {
              handles[step.handle]!.close();
              handles[step.handle] = open();
            }
            expect(answer(handles[which]!, step, n), JSON.stringify(step)).toEqual(
              answer(reference, step, n),
            );
          }
          for (const handle of handles) handle.close();
        },
      ),
      { numRuns: 80 },
    );
  });
});
