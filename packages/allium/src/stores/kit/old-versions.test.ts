import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { upgradeEntries } from '../../kernel/journal/entry-upgrade.js';
import {
  ENTRY_VERSION,
  type EntryBody,
  type InboxItem,
  type NewEntry,
  type Store,
} from '../../kernel/protocol/store.js';
import { fileStore } from '../file/index.js';
import { memoryStore } from '../memory/index.js';
import { sqliteStore } from '../sqlite/index.js';

/**
 * `fixtures/v<n>` holds a session as release n wrote it: in words (`journal.json`) and as the stores left it on disk.
 * They are never changed once that release is out. Those of the current version are written with
 * `ALLIUM_WRITE_FIXTURES=1 npx vitest run old-versions`.
 */
interface Journal {
  readonly sessionId: string;
  readonly appends: readonly (readonly NewEntry[])[];
  readonly inbox: readonly InboxItem[];
  readonly taken: number;
  /** What the entries are today, where that is not what they were. */
  readonly today?: readonly unknown[];
}

const fixtures = path.join(import.meta.dirname, 'fixtures');
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'allium-old-versions-'));
afterAll(() => fs.rmSync(scratch, { recursive: true }));

const STORES: Record<string, (folder: string) => Store> = {
  file: (folder) => fileStore({ dir: path.join(folder, 'file') }),
  sqlite: (folder) => sqliteStore({ path: path.join(folder, 'sessions.db') }),
};

async function write(store: Store, { sessionId, appends, inbox, taken }: Journal): Promise<void> {
  let seq = 0;
  for (const entries of appends) seq = await store.append(sessionId, seq, entries);
  for (const item of inbox) await store.post(sessionId, item);
  await store.take(sessionId, taken);
  await store.close?.();
}

if (process.env.ALLIUM_WRITE_FIXTURES) {
  const folder = path.join(fixtures, `v${ENTRY_VERSION}`);
  for (const name of fs.readdirSync(folder))
    if (name !== 'journal.json') fs.rmSync(path.join(folder, name), { recursive: true });
  for (const open of Object.values(STORES)) await write(open(folder), read(`v${ENTRY_VERSION}`));
}

function read(version: string): Journal {
  return JSON.parse(fs.readFileSync(path.join(fixtures, version, 'journal.json'), 'utf8'));
}

describe.each(fs.readdirSync(fixtures))('a session of version %s', (version) => {
  const journal = read(version);
  const today =
    journal.today ?? journal.appends.flat().map((entry, i) => ({ ...entry, v: ENTRY_VERSION, seq: i + 1 }));

  it.each(Object.keys(STORES))('is read from a %s store', async (kind) => {
    const folder = path.join(scratch, `${version}-${kind}`);
    fs.cpSync(path.join(fixtures, version), folder, { recursive: true });
    const store = STORES[kind]!(folder);
    expect(upgradeEntries(journal.sessionId, (await store.read(journal.sessionId, 1)) as never)).toEqual(
      today,
    );
    const { sessions } = await store.list({ tenant: 'acme' });
    expect(sessions).toEqual([
      {
        sessionId: journal.sessionId,
        tenant: 'acme',
        seq: today.length,
        createdAt: 1760000000000,
        updatedAt: 1760000000005,
      },
    ]);
    expect(await store.take(journal.sessionId, 0)).toEqual([
      { n: journal.taken + 1, item: journal.inbox[journal.taken] },
    ]);
    await store.close?.();
  });

  it.each(Object.keys(STORES))('can be continued in a %s store', async (kind) => {
    const folder = path.join(scratch, `${version}-${kind}-on`);
    fs.cpSync(path.join(fixtures, version), folder, { recursive: true });
    const store = STORES[kind]!(folder);
    const head = await store.head(journal.sessionId);
    expect(
      await store.append(journal.sessionId, head, [{ v: ENTRY_VERSION, at: 1, type: 'inbox', cursor: 3 }]),
    ).toBe(head + 1);
    expect(upgradeEntries(journal.sessionId, (await store.read(journal.sessionId, 1)) as never)).toHaveLength(
      head + 1,
    );
    await store.close?.();
  });
});

it('there is a fixture of the current version with an entry of every type', async () => {
  const types: Record<EntryBody['type'], true> = {
    run_start: true,
    message: true,
    state: true,
    tool_started: true,
    tool_finished: true,
    request: true,
    answer: true,
    verdict: true,
    usage: true,
    active: true,
    trace: true,
    inbox: true,
    rewind: true,
    run_end: true,
  };
  const journal = read(`v${ENTRY_VERSION}`);
  expect(new Set(journal.appends.flat().map(({ type }) => type))).toEqual(new Set(Object.keys(types)));
  expect(new Set(journal.appends.flat().map(({ v }) => v))).toEqual(new Set([ENTRY_VERSION]));
  const store = memoryStore();
  await write(store, journal);
  expect(await store.head(journal.sessionId)).toBe(journal.appends.flat().length);
});
