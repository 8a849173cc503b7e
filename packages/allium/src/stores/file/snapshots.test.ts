import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { NewEntry } from '../../index.js';
import { entriesIn, entriesText } from '../kit/index.js';
import { fileStore } from './index.js';

let dir: string;
beforeEach(() => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), 'allium-snapshots-'));
});
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }));

const said = (n: number, text = 'x'): NewEntry => ({
  v: 2,
  at: n,
  type: 'message',
  runId: 'r_1',
  message: { id: `r_1.${n}`, role: 'user', content: [{ type: 'text', text }] },
});

/** A session too long to be read from its beginning without need. */
function longSession(entries = 400, snapshotAt = 300): void {
  const store = fileStore({ dir });
  for (let n = 1; n <= entries; n++)
    store.append(
      's',
      n - 1,
      [said(n, 'x'.repeat(500))],
      n === snapshotAt ? { seq: n - 1, state: `state of ${n - 1}` } : undefined,
    );
  store.close();
}

const fileOf = (id = 's'): string => path.join(dir, `${id}.jsonl`);

/** Changes bytes of the file without changing its length. */
function damage(find: string, replace: string): void {
  const text = fs.readFileSync(fileOf(), 'latin1');
  expect(text.split(find)).toHaveLength(2);
  fs.writeFileSync(fileOf(), text.replace(find, replace), 'latin1');
}

describe('fileStore, snapshots', () => {
  it('reads a long session from its snapshot on, and reports earlier damage only when that part is read', () => {
    longSession();
    damage('"id":"r_1.7"'.replace('"r_1.7"', '7,'), '"id":8,');
    const store = fileStore({ dir });
    const { snapshot, entries } = store.tail!('s');
    expect(snapshot).toEqual({ seq: 299, state: 'state of 299' });
    expect(entries.map(({ seq }) => seq)).toEqual(Array.from({ length: 101 }, (_, i) => 300 + i));
    expect(store.head('s')).toBe(400);
    expect(store.append('s', 400, [said(401)])).toBe(401);
    expect(() => store.read('s', 1)).toThrow(/checksum/);
  });

  it('drops a snapshot whose own entries were cut short, also once others have their numbers', () => {
    longSession();
    const store = fileStore({ dir });
    store.append('s', 400, [said(401, 'cut short')], { seq: 401, state: 'with the entry that is cut short' });
    store.close();
    fs.truncateSync(fileOf(), fs.statSync(fileOf()).size - 20);
    const again = fileStore({ dir });
    expect(again.head('s')).toBe(400);
    expect(again.tail!('s').snapshot?.state).not.toBe('with the entry that is cut short');
    again.append('s', 400, [said(401, 'another')]);
    again.close();
    const last = fileStore({ dir });
    const { snapshot, entries } = last.tail!('s');
    expect(snapshot?.state).not.toBe('with the entry that is cut short');
    expect(entries.at(-1)).toMatchObject({ seq: 401, message: { content: [{ text: 'another' }] } });
    last.append('s', 401, [said(402)], { seq: 402, state: 'whole' });
    expect(last.tail!('s')).toEqual({ snapshot: { seq: 402, state: 'whole' }, entries: [] });
  });

  it('reports damage in the snapshot and behind it', () => {
    longSession();
    damage('state of 299', 'state of 298');
    expect(() => fileStore({ dir }).tail!('s')).toThrow(/checksum/);
    fs.rmSync(fileOf());
    longSession();
    damage('"id":350,', '"id":351,');
    expect(() => fileStore({ dir }).tail!('s')).toThrow(/checksum/);
  });

  it('ignores a snapshot that came behind the line of another handle', () => {
    longSession(400, 0);
    const [a, b] = [fileStore({ dir }), fileStore({ dir })];
    expect([a.head('s'), b.head('s')]).toEqual([400, 400]);
    a.append('s', 400, [said(401)]);
    expect(() => b.append('s', 400, [said(401)], { seq: 400, state: 'of b' })).toThrow(
      /SESSION_CONFLICT|entry/,
    );
    expect(fs.readFileSync(fileOf(), 'utf8')).toContain('of b');
    const fresh = fileStore({ dir });
    expect(fresh.tail!('s').snapshot).toBeUndefined();
    expect(fresh.read('s', 401)).toHaveLength(1);
  });

  it('knows inbox items from before the snapshot, and overwrites them when they are taken', () => {
    const store = fileStore({ dir });
    store.append('s', 0, [said(1)]);
    store.post('s', { type: 'cancel', reason: 'first secret' });
    store.post('s', { type: 'cancel', reason: 'second secret' });
    for (let n = 2; n <= 400; n++)
      store.append('s', n - 1, [said(n, 'x'.repeat(500))], n === 390 ? { seq: 389, state: '' } : undefined);
    const snap = fs.readFileSync(fileOf(), 'utf8').match(/\{"snap".*/)![0];
    expect(snap).not.toContain('secret');
    const fresh = fileStore({ dir });
    expect(fresh.take('s', 0).map(({ n }) => n)).toEqual([1, 2]);
    fresh.append('s', 400, [{ v: 2, at: 1, type: 'inbox', cursor: 1 }]);
    expect(fs.readFileSync(fileOf(), 'utf8')).not.toContain('first secret');
    const again = fileStore({ dir });
    expect(again.take('s', 1).map(({ n }) => n)).toEqual([2]);
    again.post('s', { type: 'cancel' });
    expect(again.take('s', 1).map(({ n }) => n)).toEqual([2, 3]);
  });

  it('goes on after a snapshot that was cut short', () => {
    longSession(400, 0);
    fs.appendFileSync(fileOf(), ' \n{"snap":400,"at":');
    const store = fileStore({ dir });
    expect(store.append('s', 400, [said(401)])).toBe(401);
    expect(fileStore({ dir }).tail!('s').entries).toHaveLength(401);
  });
});

describe('entries in the lines of a file', () => {
  const text = fc.oneof(
    fc.string(),
    fc.constantFrom('user', 'assistant', 'tool', 'r_1', 'r_1.5', 'r_1.05', 'r_1.1e3', '__proto__'),
  );
  const usage = fc.oneof(
    fc.constant({ inputTokens: 1, outputTokens: 2, cacheRead: 0, cacheWrite: 0, totalTokens: 3 }),
    fc.constant({ inputTokens: 1, outputTokens: 2, cacheRead: 0, cacheWrite: 0, totalTokens: 3, more: 1 }),
    fc.constant({ inputTokens: 1 }),
  );
  const part = fc.oneof(
    fc.record(
      { type: fc.constantFrom('text', 'tool-call', 'image'), text, id: text, name: text, arguments: text },
      { requiredKeys: ['type'] },
    ),
    fc.record({ type: fc.constant('text'), text }),
    fc.record({ type: fc.constant('tool-call'), id: text, name: text, arguments: text }),
    fc.jsonValue(),
  );
  const content = fc.oneof(fc.array(part), fc.jsonValue());
  const message = fc.oneof(
    fc.record(
      {
        id: text,
        role: text,
        content,
        usage,
        isError: fc.boolean(),
        toolCallId: text,
        toolName: text,
        stopReason: text,
        model: text,
        a: fc.jsonValue(),
      },
      { requiredKeys: ['id', 'role'] },
    ),
    // Like those of every turn.
    fc.record({
      id: fc.constant('r_1.5'),
      role: fc.constant('assistant'),
      content,
      usage,
      stopReason: text,
      model: text,
    }),
    fc.record({
      id: fc.constant('r_1.6'),
      role: fc.constant('tool'),
      toolCallId: text,
      toolName: text,
      content,
      isError: fc.boolean(),
    }),
  );
  const entry = fc.record(
    {
      v: fc.constantFrom(1, 2),
      at: fc.constantFrom(5, 6.5),
      type: fc.constantFrom('message', 'tool_finished', 'state', 'inbox'),
      runId: fc.constantFrom('r_1', 'r_2', '"'),
      message,
      started: fc.boolean(),
      value: fc.jsonValue(),
    },
    { requiredKeys: ['v', 'at', 'type'] },
  );

  it('come back as they were', () => {
    fc.assert(
      fc.property(fc.array(entry, { minLength: 1, maxLength: 4 }), (entries) => {
        const line = JSON.parse(`{${entriesText(entries as never)}}`);
        expect(JSON.parse(JSON.stringify(entriesIn(line)))).toEqual(JSON.parse(JSON.stringify(entries)));
      }),
      { numRuns: 2000 },
    );
  });
});
