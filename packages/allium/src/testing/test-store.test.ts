import { memoryStore } from 'allium';
import { describe, expect, it } from 'vitest';
import type { Store } from '../kernel/protocol/store.js';
import { piecemealStore } from './broken/stores/atomic-append.js';
import { hastyStore } from './broken/stores/conflict-writes-nothing.js';
import { bufferingStore, bufferingStoreAgain } from './broken/stores/crash.js';
import { broken } from './broken/stores/delegate.js';
import { mailKeepingStore } from './broken/stores/delete.js';
import { transcriptKeepingStore } from './broken/stores/delete-sub-agents.js';
import { trustingStore } from './broken/stores/expected-seq.js';
import { wholeForkStore } from './broken/stores/fork-copies.js';
import { mailCopyingForkStore, recountingForkStore } from './broken/stores/fork-inbox.js';
import { dependentForkStore } from './broken/stores/fork-isolation.js';
import { eagerStore, zeroBasedStore } from './broken/stores/gapless-seq.js';
import { carelessStore } from './broken/stores/ignores-expected-seq.js';
import { rememberingInboxStore } from './broken/stores/inbox-current.js';
import { destructiveInboxStore } from './broken/stores/inbox-cursor.js';
import { strictInboxStore } from './broken/stores/inbox-early.js';
import { stackInboxStore } from './broken/stores/inbox-order.js';
import { hoardingInboxStore } from './broken/stores/inbox-taken.js';
import { prefixDeletingStore } from './broken/stores/independent-sessions.js';
import { cuttingStore, shortMessageStore } from './broken/stores/large-values.js';
import { endlessStore, offsetPagingStore, unlimitedStore } from './broken/stores/list-paging.js';
import { emptyQueryStore, emptyTenantStore, tenantBlindStore } from './broken/stores/list-tenant.js';
import { forgetfulPagingStore, timelessStore } from './broken/stores/list-time.js';
import { sharingStore } from './broken/stores/no-sharing.js';
import { lateStore } from './broken/stores/one-winner.js';
import { disorderlyStore, textSortingStore, timeSortingStore } from './broken/stores/order.js';
import { batchReadingStore } from './broken/stores/read-from.js';
import { caseFoldingStore } from './broken/stores/session-ids.js';
import { overlappingTailStore, snapshotKeepingStore } from './broken/stores/tail.js';
import { cachingStore, cachingStoreAgain } from './broken/stores/two-handles.js';
import { lossyTextStore } from './broken/stores/unicode.js';
import {
  columnsStore,
  inboxColumnsStore,
  narrowTimeStore,
  nullDroppingStore,
  versionlessStore,
} from './broken/stores/values.js';
import { STORE_LAWS, type StoreLaw } from './store-laws/index.js';
import { checkStore, testStore } from './test-store.js';

/** Per law: stores that break it and nothing else. */
const BROKEN: Record<
  StoreLaw,
  readonly { readonly open: () => Store; readonly reopen?: (store: Store) => Store }[]
> = {
  order: [{ open: disorderlyStore }, { open: timeSortingStore }, { open: textSortingStore }],
  'gapless-seq': [{ open: zeroBasedStore }, { open: eagerStore }],
  'atomic-append': [{ open: piecemealStore }],
  'expected-seq': [{ open: trustingStore }],
  'one-winner': [{ open: lateStore }],
  'conflict-writes-nothing': [{ open: hastyStore }],
  values: [
    { open: nullDroppingStore },
    { open: columnsStore },
    { open: inboxColumnsStore },
    { open: narrowTimeStore },
    { open: versionlessStore },
  ],
  'large-values': [{ open: cuttingStore }, { open: shortMessageStore }],
  unicode: [{ open: lossyTextStore }],
  'read-from': [{ open: batchReadingStore }],
  'no-sharing': [{ open: sharingStore }],
  'independent-sessions': [{ open: prefixDeletingStore }],
  'session-ids': [{ open: caseFoldingStore }],
  'list-tenant': [{ open: tenantBlindStore }, { open: emptyQueryStore }, { open: emptyTenantStore }],
  'list-time': [{ open: timelessStore }, { open: forgetfulPagingStore }],
  'list-paging': [{ open: offsetPagingStore }, { open: unlimitedStore }, { open: endlessStore }],
  'fork-copies': [{ open: wholeForkStore }],
  'fork-isolation': [{ open: dependentForkStore }],
  'fork-inbox': [{ open: recountingForkStore }, { open: mailCopyingForkStore }],
  'delete-sub-agents': [{ open: transcriptKeepingStore }],
  delete: [{ open: mailKeepingStore }],
  'inbox-order': [{ open: stackInboxStore }],
  'inbox-cursor': [{ open: destructiveInboxStore }],
  'inbox-current': [{ open: rememberingInboxStore }],
  'inbox-taken': [{ open: hoardingInboxStore }],
  'inbox-early': [{ open: strictInboxStore }],
  tail: [{ open: overlappingTailStore }, { open: snapshotKeepingStore }],
  'two-handles': [{ open: cachingStore, reopen: cachingStoreAgain }],
  crash: [{ open: bufferingStore, reopen: bufferingStoreAgain }],
};

describe('the suite names the law that a broken store breaks', () => {
  for (const [law, stores] of Object.entries(BROKEN)) {
    for (const store of stores) {
      it(`${law}: ${store.open.name}`, async () => {
        const failed = (await checkStore(store)).filter(({ ok }) => !ok);
        expect(
          failed.map((report) => report.law),
          JSON.stringify(failed),
        ).toEqual([law]);
      });
    }
  }

  it('the suite names every law that a store breaks', async () => {
    const failed = (await checkStore(carelessStore)).filter(({ ok }) => !ok);
    expect(failed.map(({ law }) => law)).toEqual(['expected-seq', 'one-winner', 'conflict-writes-nothing']);
  });
});

describe('checkStore', () => {
  it('finds nothing wrong with the memory store', async () => {
    const reports = await checkStore(memoryStore);
    expect(reports.filter(({ ok }) => !ok)).toEqual([]);
    expect(reports.filter(({ skipped }) => skipped !== undefined)).toEqual([
      { law: 'two-handles', ok: true, skipped: 'It needs `reopen`.' },
      { law: 'crash', ok: true, skipped: 'It needs `reopen`.' },
    ]);
    expect(reports).toHaveLength(STORE_LAWS.length);
  });

  it('says which field of which entry was lost', async () => {
    const reports = await checkStore(columnsStore);
    expect(reports.find(({ law }) => law === 'values')?.error).toMatch(
      /^Expected an entry of type "run_start", with all its fields, read back .*they differ at \["0"\]\["parent"\]\)\.$/,
    );
  });

  it('says what was expected and what it got', async () => {
    const reports = await checkStore(zeroBasedStore);
    expect(reports.find(({ law }) => law === 'gapless-seq')?.error).toBe(
      'Expected the `seq` of four entries to be [1,2,3,4], got [0,1,2,3] (they differ at ["0"]).',
    );
  });

  it('reports a store that cannot be opened or hangs, instead of failing or hanging itself', async () => {
    const unopened = await checkStore(() => Promise.reject(new Error('no such server')));
    expect(new Set(unopened.filter(({ skipped }) => !skipped).map(({ error }) => error))).toEqual(
      new Set(['no such server']),
    );
    const hanging = await checkStore({
      open: () => broken(memoryStore(), { append: () => new Promise<number>(() => {}) }),
      timeoutMs: 5,
    });
    expect(hanging.find(({ law }) => law === 'order')?.error).toBe('The law did not finish within 5 ms.');
  });

  it('says what `open` returned if it is not a store', async () => {
    const reports = await checkStore(() => undefined as never);
    expect(new Set(reports.filter(({ skipped }) => !skipped).map(({ error }) => error))).toEqual(
      new Set([
        'Expected `open()` to be a store with append, read, head, list, fork, delete, post, take, got undefined.',
      ]),
    );
  });

  it('closes every handle it opened, even if a law fails', async () => {
    let open = 0;
    const counted = (store: Store): Store => {
      open++;
      return { ...store, close: () => void open-- };
    };
    await checkStore({ open: () => counted(cachingStore()) });
    expect(open).toBe(0);
  });
});

describe('testStore', () => {
  function declared(options: Partial<Parameters<typeof testStore>[0]>): Map<string, () => Promise<void>> {
    const tests = new Map<string, () => Promise<void>>();
    testStore({
      open: memoryStore,
      describe: (_, fn) => fn(),
      it: (name, fn) => tests.set(name, fn),
      ...options,
    });
    return tests;
  }

  it('declares one test per law with the functions it is given', () => {
    expect([...declared({}).keys()]).toEqual(STORE_LAWS.map(({ law }) => law));
  });

  it('declares no test for a skipped law', () => {
    expect(declared({ skip: { crash: 'nothing outlives it' } }).has('crash')).toBe(false);
  });

  it('fails a law that needs `reopen` and is not skipped', async () => {
    await expect(declared({}).get('crash')!()).rejects.toThrow(
      'The law "crash" cannot be tried. It needs `reopen`. Give it, or declare why',
    );
  });

  it('fails the test of a law that does not hold', async () => {
    await expect(declared({ open: zeroBasedStore }).get('gapless-seq')!()).rejects.toThrow(
      'Expected the `seq` of four entries',
    );
  });

  it('refuses a skip with an unknown law or without a reason', () => {
    expect(() => declared({ skip: { crsh: 'typo' } as object })).toThrow(
      '`skip` names "crsh", which is not a law. Did you mean "crash"?',
    );
    expect(() => declared({ skip: { crash: '' } })).toThrow(
      'Expected `skip["crash"]` to be the reason, as text, got "".',
    );
  });

  it('asks for `it` and `describe` if there are no global ones', () => {
    expect(() => testStore({ open: memoryStore, describe })).toThrow(
      'Expected `it` to be the `it` of your test runner',
    );
  });
});

testStore({
  name: 'memoryStore',
  open: memoryStore,
  skip: { 'two-handles': 'The data is inside the handle.', crash: 'The data goes with the process.' },
  it,
  describe,
});
