/** The conformance suite of the store port: one test per law, for the stores here and for yours. */

import type { Awaitable, Store } from '../index.js';
import { checkKeys, invalidOption } from '../kit/index.js';
import {
  checkLaws,
  declareLaws,
  type Law,
  type LawReport,
  type RunnerOptions,
  type Skips,
} from './law-runner.js';
import { type LawContext, STORE_LAWS, type StoreLaw } from './store-laws/index.js';

export type { StoreLaw } from './store-laws/index.js';

export interface CheckStoreOptions {
  /** Opens a store; called once or twice per law. The store may hold other sessions: the laws use their own ids and tenants. */
  readonly open: () => Awaitable<Store>;
  /** Opens another handle on the data of `store`, as another process would. Laws about two handles need it. */
  readonly reopen?: (store: Store) => Awaitable<Store>;
  /** Closes a handle. @default calls its `close`, if it has one */
  readonly close?: (store: Store) => Awaitable<void>;
  /** Laws that do not hold, each with the reason. */
  readonly skip?: Skips<StoreLaw>;
  /** A law that takes longer (milliseconds) has failed. @default 30000 */
  readonly timeoutMs?: number;
}

export interface TestStoreOptions extends CheckStoreOptions, RunnerOptions {}

/**
 * Declares one test per law of the store port with vitest, node:test or any runner of that shape.
 *
 * A law is skipped only with a reason, and a store without `reopen` has to skip the laws that need it. So what a
 * store does not promise is written down where its users look.
 *
 * @example
 * ```ts
 * import { describe, it } from 'node:test';
 * testStore({ name: 'my store', open: () => myStore(), reopen: (store) => myStore(), it, describe });
 * ```
 */
export function testStore(options: TestStoreOptions): void {
  checkKeys('`testStore`', options, [...KEYS, 'name', 'it', 'describe']);
  const { name = 'store', it, describe, ...rest } = options;
  checkOptions(rest);
  declareLaws(LAWS, rest, rest.skip, { name, ...(it && { it }), ...(describe && { describe }) });
}

/** Tries every law and reports by name. Without `reopen` the laws that need it are reported as skipped. */
export async function checkStore(
  options: CheckStoreOptions | CheckStoreOptions['open'],
): Promise<readonly LawReport<StoreLaw>[]> {
  const given = typeof options === 'function' ? { open: options } : options;
  checkKeys('`checkStore`', given, KEYS);
  checkOptions(given);
  return checkLaws(LAWS, given, given.skip);
}

const METHODS = ['append', 'read', 'head', 'list', 'fork', 'delete', 'post', 'take'] as const;
const KEYS = ['open', 'reopen', 'close', 'skip', 'timeoutMs'];

function checkOptions({ open, reopen, close, timeoutMs = 1 }: CheckStoreOptions): void {
  if (typeof open !== 'function') throw invalidOption('open', 'a function that opens a store', open);
  if (reopen !== undefined && typeof reopen !== 'function')
    throw invalidOption('reopen', 'a function', reopen);
  if (close !== undefined && typeof close !== 'function') throw invalidOption('close', 'a function', close);
  if (!(timeoutMs > 0)) throw invalidOption('timeoutMs', 'a number > 0', timeoutMs);
}

const LAWS: readonly Law<StoreLaw, CheckStoreOptions>[] = STORE_LAWS.map(
  ({ law, statement, needs, check }) => ({
    law,
    statement,
    needs: ({ reopen }) => (needs === 'reopen' && reopen === undefined ? 'It needs `reopen`.' : undefined),
    check: (options) => holds(check, options),
  }),
);

let trials = 0;

async function holds(
  check: (context: LawContext) => Promise<void>,
  options: CheckStoreOptions,
): Promise<void> {
  const { open, reopen, close = (store) => store.close?.(), timeoutMs = 30_000 } = options;
  const handles: Store[] = [];
  const keep = async (opening: Awaitable<Store>): Promise<Store> => {
    const store = await opening;
    if (!METHODS.every((method) => typeof store?.[method] === 'function'))
      throw invalidOption('open()', `a store with ${METHODS.join(', ')}`, store);
    handles.push(store);
    return store;
  };
  // Each trial has its own, so that a store on a shared server can be tried again and again.
  const prefix = `${Date.now().toString(36)}-${(trials++).toString(36)}-${Math.random().toString(36).slice(2, 8)}`;
  const context: LawContext = { prefix, open: () => keep(open()), reopen: (store) => keep(reopen!(store)) };
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`The law did not finish within ${timeoutMs} ms.`)), timeoutMs);
  });
  try {
    await Promise.race([check(context), late]);
  } finally {
    clearTimeout(timer);
    // If one handle cannot be closed, close the others all the same.
    await Promise.allSettled(handles.map(async (handle) => close(handle)));
  }
}
