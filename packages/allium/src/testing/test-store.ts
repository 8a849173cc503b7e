/** The conformance suite of the store port: one test per law, for the stores here and for yours. */
import { AlliumError, checkKeys, invalidOption, messageOf, nearest, shown } from '../kernel/errors.js';
import type { Awaitable, Store } from '../kernel/store.js';
import { type LawContext, STORE_LAWS, type StoreLaw } from './store-laws.js';

export type { StoreLaw } from './store-laws.js';

export interface CheckStoreOptions {
  /** Opens a store. Called once per law; it may be full of other sessions, the laws use ids and tenants of their own. */
  readonly open: () => Awaitable<Store>;
  /** Opens another handle on the data of `store`, as another process would. Laws about two handles need it. */
  readonly reopen?: (store: Store) => Awaitable<Store>;
  /** Ends a handle. @default calls its `close`, where it has one */
  readonly close?: (store: Store) => Awaitable<void>;
  /** Laws that do not hold, each with the reason. */
  readonly skip?: Partial<Readonly<Record<StoreLaw, string>>>;
  /** A law that takes longer (milliseconds) has failed. @default 30000 */
  readonly timeoutMs?: number;
}

export interface TestStoreOptions extends CheckStoreOptions {
  /** The title of the suite. @default 'store' */
  readonly name?: string;
  /** Of your test runner. @default the global one */
  readonly it?: (name: string, fn: () => Promise<void>) => unknown;
  /** Of your test runner. @default the global one */
  readonly describe?: (name: string, fn: () => void) => unknown;
}

export interface LawReport {
  readonly law: StoreLaw;
  readonly ok: boolean;
  /** What was expected and what happened. */
  readonly error?: string;
  /** Why the law was not tried. */
  readonly skipped?: string;
}

/**
 * Declares one test per law of the store port with vitest, node:test or any runner of that shape.
 *
 * A law that is skipped has to be declared with a reason, and a store without `reopen` has to declare the laws that
 * need it: what a store does not promise is then written down where its users look.
 *
 * @example
 * ```ts
 * import { describe, it } from 'node:test';
 * testStore({ name: 'my store', open: () => myStore(), reopen: (store) => myStore(), it, describe });
 * ```
 */
export function testStore(options: TestStoreOptions): void {
  checkKeys('`testStore`', options, ['name', 'open', 'reopen', 'close', 'skip', 'timeoutMs', 'it', 'describe']);
  const { name = 'store', it = runnerFunction('it'), describe = runnerFunction('describe'), ...rest } = options;
  checkOptions(rest);
  describe(name, () => {
    for (const { law, needs } of STORE_LAWS) {
      // Skipped laws are left out instead of being marked: a gate that fails on skipped tests stays usable.
      if (rest.skip?.[law] !== undefined) continue;
      it(law, async () => {
        if (needs === 'reopen' && rest.reopen === undefined) throw new Error(undeclared(law));
        await holds(law, rest);
      });
    }
  });
}

/** Tries every law and reports by name. Without `reopen` the laws that need it are reported as skipped. */
export async function checkStore(options: CheckStoreOptions | CheckStoreOptions['open']): Promise<readonly LawReport[]> {
  const given = typeof options === 'function' ? { open: options } : options;
  checkKeys('`checkStore`', given, ['open', 'reopen', 'close', 'skip', 'timeoutMs']);
  checkOptions(given);
  const reports: LawReport[] = [];
  for (const { law, needs } of STORE_LAWS) {
    const skipped = given.skip?.[law] ?? (needs === 'reopen' && !given.reopen ? 'It needs `reopen`.' : undefined);
    if (skipped !== undefined) {
      reports.push({ law, ok: true, skipped });
      continue;
    }
    try {
      await holds(law, given);
      reports.push({ law, ok: true });
    } catch (error) {
      reports.push({ law, ok: false, error: messageOf(error) });
    }
  }
  return reports;
}

let runs = 0;

async function holds(name: StoreLaw, options: CheckStoreOptions): Promise<void> {
  const { open, reopen, close = (store) => store.close?.(), timeoutMs = 30_000 } = options;
  const { check } = STORE_LAWS.find(({ law }) => law === name)!;
  const handles: Store[] = [];
  const keep = async (opening: Awaitable<Store>): Promise<Store> => {
    const store = await opening;
    handles.push(store);
    return store;
  };
  // Unlike any other run's, so that a store on a shared server can be tried again and again.
  const prefix = `${Date.now().toString(36)}-${(runs++).toString(36)}-${Math.random().toString(36).slice(2, 8)}`;
  const context: LawContext = {
    prefix,
    open: () => keep(open()),
    reopen: (store) => keep(reopen!(store)),
  };
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`The law did not finish within ${timeoutMs} ms.`)), timeoutMs);
  });
  try {
    await Promise.race([check(context), late]);
  } finally {
    clearTimeout(timer);
    // One handle that cannot be closed must not leave the others open.
    await Promise.allSettled(handles.map(async (handle) => close(handle)));
  }
}

function checkOptions({ open, reopen, close, skip = {}, timeoutMs = 1 }: CheckStoreOptions): void {
  if (typeof open !== 'function') throw invalidOption('open', 'a function that opens a store', open);
  if (reopen !== undefined && typeof reopen !== 'function') throw invalidOption('reopen', 'a function', reopen);
  if (close !== undefined && typeof close !== 'function') throw invalidOption('close', 'a function', close);
  if (!(timeoutMs > 0)) throw invalidOption('timeoutMs', 'a number > 0', timeoutMs);
  const laws = STORE_LAWS.map(({ law }) => law);
  for (const [law, reason] of Object.entries(skip)) {
    if (!laws.includes(law as StoreLaw)) {
      const near = nearest(law, laws);
      throw new AlliumError('INVALID_OPTION', `\`skip\` names ${shown(law)}, which is no law.${near ? ` Did you mean "${near}"?` : ''} The laws: ${laws.join(', ')}.`);
    }
    if (typeof reason !== 'string' || reason === '') throw invalidOption(`skip["${law}"]`, 'the reason, as text', reason);
  }
}

function undeclared(law: string): string {
  return `The law "${law}" needs \`reopen\`. Give it, or declare why it does not apply: skip: { '${law}': 'reason' }.`;
}

function runnerFunction<K extends 'it' | 'describe'>(name: K): NonNullable<TestStoreOptions[K]> {
  const found = (globalThis as Record<string, unknown>)[name];
  if (typeof found === 'function') return found as NonNullable<TestStoreOptions[K]>;
  throw invalidOption(name, `the \`${name}\` of your test runner (there is no global one)`, found);
}
