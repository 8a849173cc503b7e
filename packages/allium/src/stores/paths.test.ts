// Paths that cannot be used: which one, why, and what to do. In our words, whoever noticed it.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Agent, type AlliumError, type NewEntry } from 'allium';
import { auditLog } from 'allium/middleware/audit-log';
import { sqliteMemory } from 'allium/middleware/memory-recall';
import { record } from 'allium/middleware/record';
import { fileSpill } from 'allium/middleware/tool-result-limit';
import { fileStore } from 'allium/stores/file';
import { sqliteStore } from 'allium/stores/sqlite';
import { scriptedModel } from 'allium/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { pathError } from '../kit/path-error.js';

let root: string;
const at = (...parts: string[]): string => path.join(root, ...parts);

beforeEach(() => {
  root = fs.mkdtempSync(path.join(os.tmpdir(), 'allium-paths-'));
  fs.writeFileSync(
    at('file'),
    'this is no database, and it is long enough to be looked at as one '.repeat(20),
  );
  fs.mkdirSync(at('folder'));
});
afterEach(() => fs.rmSync(root, { recursive: true, force: true }));

const entry: NewEntry = {
  v: 1,
  at: 7,
  type: 'message',
  runId: 'r',
  message: { id: 'a', role: 'user', content: [] },
};

/** Uses a path, as far as that goes. Run by an agent where only a run touches it. */
const USERS: Readonly<Record<string, (file: string) => unknown>> = {
  'The file store': (dir) => fileStore({ dir }).append('s', 0, [entry]),
  'The SQLite store': (file) => sqliteStore({ path: file }).append('s', 0, [entry]),
  'sqliteMemory()': (file) => sqliteMemory({ path: file }),
  'The audit log': (file) =>
    new Agent({
      model: scriptedModel(['ok']),
      middleware: [auditLog({ sink: { file }, key: 'k'.repeat(32) })],
    }).run('go'),
  'fileSpill()': (dir) => fileSpill(dir).set('key', 'text'),
  'The recording': (file) =>
    new Agent({ model: scriptedModel(['ok']), middleware: [record({ to: file })] }).run('go'),
};

async function failure(use: () => unknown): Promise<AlliumError> {
  try {
    await use();
  } catch (error) {
    return error as AlliumError;
  }
  throw new Error('It worked.');
}

describe.each(Object.entries(USERS))('%s', (who, use) => {
  it.each<readonly [string, string, string]>([
    ['a folder of which is a file', 'file/below', 'there is a file where a folder is needed'],
    ...(/file store|fileSpill/.test(who)
      ? ([['that is a file', 'file', 'there is a file where a folder is needed']] as const)
      : ([['that is a folder', 'folder', 'it is a folder. Name a file in it.']] as const)),
    ...(/sqlite/i.test(who)
      ? ([['that is no database', 'file', 'it is not an SQLite database']] as const)
      : []),
    ...(who === 'The audit log'
      ? ([['whose folder is missing', 'none/audit.jsonl', 'its folder is not there. Make it']] as const)
      : []),
  ])('says what is wrong with a path %s', async (_, name, problem) => {
    const error = await failure(() => use(at(name)));
    expect(error.code).toBe('STORE_FAILED');
    expect(error.message).toContain(`${who} cannot use ${at(name)}: ${problem}`);
    expect(error.cause).toBeDefined();
  });

  // Even root can make nothing there, and Node's own way to make folders never comes back.
  it.runIf(process.platform === 'linux')('says that there can be no folder', async () => {
    const error = await failure(() => use('/proc/allium/below/it'));
    expect(error.code).toBe('STORE_FAILED');
    expect(error.message).toContain(`${who} cannot use /proc/allium/below/it: its folder is not there.`);
  });

  // Root may do anything, so it has to be somebody else for a moment.
  it.runIf(process.geteuid?.() === 0)('says that it has no right to write there', async () => {
    fs.chmodSync(root, 0o755);
    // What is loaded on demand is loaded now: the other user may not be able to read it.
    await use(at('used'));
    process.seteuid?.(65_534);
    try {
      const error = await failure(() => use(at('folder', 'new')));
      expect(error.code).toBe('STORE_FAILED');
      expect(error.message).toMatch(/ cannot use .*new: this process may not use it\. Give /);
    } finally {
      process.seteuid?.(0);
    }
  });
});

describe('the file store', () => {
  it('says that its folder is gone', async () => {
    const store = fileStore({ dir: at('sessions') });
    fs.rmSync(at('sessions'), { recursive: true });
    for (const use of [
      () => store.append('s', 0, [entry]),
      () => store.list(),
      () => store.post('s', { type: 'cancel' }),
    ])
      expect(await failure(use)).toMatchObject({
        code: 'STORE_FAILED',
        message: expect.stringContaining(`its folder is not there. Make it`),
      });
  });

  it('says that the place of a session is taken by a folder, and lists the others', async () => {
    const store = fileStore({ dir: at('sessions') });
    store.append('other', 0, [entry]);
    fs.mkdirSync(at('sessions', 's.jsonl'));
    expect(await failure(() => store.append('s', 0, [entry]))).toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringContaining('s.jsonl: it is a folder'),
    });
    expect(store.list().sessions.map(({ sessionId }) => sessionId)).toEqual(['other']);
  });
});

describe('what a path failed with', () => {
  it('is recognised by the error numbers of node:sqlite too', () => {
    const numbered = Object.assign(new Error('file is not a database'), {
      code: 'ERR_SQLITE_ERROR',
      errcode: 26,
    });
    expect((pathError('It', '/x', numbered) as Error).message).toBe(
      'It cannot use /x: it is not an SQLite database. Name another file, or move this one away.',
    );
    const extended = Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_WRITE' });
    expect((pathError('It', '/x', extended) as Error).message).toContain('the disk failed');
  });

  it('keeps its own message if nothing better is known', () => {
    expect((pathError('It', '/x', new Error('odd')) as Error).message).toBe('It cannot use /x: odd');
  });
});
