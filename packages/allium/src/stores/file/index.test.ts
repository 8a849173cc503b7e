import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { Entry, NewEntry, Store } from '../../kernel/protocol/store.js';
import { testStore } from '../../testing/test-store.js';
import type { SyncStore } from '../kit/index.js';
import { fileName } from './file-name.js';
import { type FileStoreOptions, fileStore } from './index.js';

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'allium-file-store-'));
afterAll(() => fs.rmSync(root, { recursive: true }));

let count = 0;
const newDir = () => path.join(root, `${count++}`);

function suite(name: string, options: Partial<FileStoreOptions>): void {
  const dirs = new WeakMap<Store, string>();
  const on = (dir: string): Store => {
    const store = fileStore({ dir, ...options });
    dirs.set(store, dir);
    return store;
  };
  testStore({ name, open: () => on(newDir()), reopen: (store) => on(dirs.get(store)!), it, describe });
}

suite('fileStore', {});
suite("fileStore with fsync: 'always'", { fsync: 'always' });

const text = (id: string): NewEntry => ({
  v: 1,
  at: 7,
  type: 'message',
  runId: 'r',
  message: { id, role: 'user', content: [{ type: 'text', text: id }] },
});
const ids = (store: Store, session = 's') =>
  (store.read(session, 1) as Entry[]).map((entry) =>
    entry.type === 'message' ? entry.message.id : entry.type,
  );
/** Does something right before the next call of this kind. */
function interposed(name: 'openSync' | 'writeSync', meanwhile: () => void): void {
  const call = fs[name] as (...args: unknown[]) => number;
  vi.spyOn(fs, name).mockImplementationOnce(((...args: unknown[]) => {
    meanwhile();
    return call(...args);
  }) as never);
}
const reading = (dir: string) => fs.readFileSync(path.join(dir, 's.jsonl'));
const linesOf = (dir: string) =>
  reading(dir)
    .toString()
    .split('\n')
    .filter((line) => line.trim() !== '');

describe('fileStore, cut short at any byte of an append', () => {
  const dir = newDir();
  const store = fileStore({ dir });
  store.append('s', 0, [text('a')]);
  const before = reading(dir).length;
  store.append('s', 1, [text('b'), text('🧅')]);
  const whole = reading(dir);
  store.close();

  it('finds all of it or nothing, and goes on', () => {
    for (let cut = before; cut < whole.length; cut++) {
      const torn = newDir();
      fs.mkdirSync(torn);
      fs.writeFileSync(path.join(torn, 's.jsonl'), whole.subarray(0, cut));
      const again = fileStore({ dir: torn });
      expect(ids(again), `cut at ${cut}`).toEqual(['a']);
      expect(again.head('s')).toBe(1);
      expect(again.append('s', 1, [text('c')])).toBe(2);
      expect(again.append('s', 2, [text('d')])).toBe(3);
      expect(ids(again)).toEqual(['a', 'c', 'd']);
      expect(ids(fileStore({ dir: torn }))).toEqual(['a', 'c', 'd']);
      again.close();
    }
  });

  it('keeps what was cut short in the file, marked', () => {
    const torn = newDir();
    fs.mkdirSync(torn);
    fs.writeFileSync(path.join(torn, 's.jsonl'), whole.subarray(0, before + 20));
    fileStore({ dir: torn }).append('s', 1, [text('c')]);
    expect(linesOf(torn)[1]).toBe(`${whole.subarray(before + 2, before + 20)} `);
  });

  it('reads what earlier code wrote: without line breaks in front, and with torn lines marked', () => {
    const old = newDir();
    fs.mkdirSync(old);
    const [a, bc] = linesOf(dir);
    fs.writeFileSync(path.join(old, 's.jsonl'), `${a}\n${bc!.slice(0, 20)}#torn\n${bc}\n${bc!.slice(0, 20)}`);
    const again = fileStore({ dir: old });
    expect(ids(again)).toEqual(['a', 'b', '🧅']);
    expect(again.append('s', 3, [text('c')])).toBe(4);
    expect(ids(fileStore({ dir: old }))).toEqual(['a', 'b', '🧅', 'c']);
  });

  it('treats a line of zeros, which a power failure leaves, as cut short', () => {
    const torn = newDir();
    fs.mkdirSync(torn);
    fs.writeFileSync(
      path.join(torn, 's.jsonl'),
      Buffer.concat([whole.subarray(0, before), Buffer.alloc(300), Buffer.from(']}\n')]),
    );
    const again = fileStore({ dir: torn });
    expect(ids(again)).toEqual(['a']);
    expect(again.append('s', 1, [text('c')])).toBe(2);
    expect(ids(again)).toEqual(['a', 'c']);
  });
});

it.each<[string, (whole: Buffer) => Buffer]>([
  ['in UTF-16, as an editor or a shell may save it', (whole) => Buffer.from(`\uFEFF${whole}`, 'utf16le')],
  ['binary', (whole) => Buffer.from(whole.map((_, i) => (i * 7919) & 255))],
])('a journal %s is damaged, and not a session that does not exist', (_, damage) => {
  const dir = newDir();
  fileStore({ dir }).append('s', 0, [text('a'), text('b')]);
  const file = path.join(dir, 's.jsonl');
  const changed = damage(fs.readFileSync(file));
  fs.writeFileSync(file, changed);
  const again = fileStore({ dir });
  expect(() => again.head('s')).toThrow(expect.objectContaining({ code: 'SESSION_CORRUPT' }));
  expect(() => again.append('s', 0, [text('c')])).toThrow(
    expect.objectContaining({ code: 'SESSION_CORRUPT' }),
  );
  expect(fs.readFileSync(file)).toEqual(changed);
});

describe('fileStore, a process that dies in the middle of a write while another one runs', () => {
  const written = (write: (store: SyncStore) => void): Buffer => {
    const dir = newDir();
    const store = fileStore({ dir });
    store.append('s', 0, [text('a')]);
    const before = reading(dir).length;
    write(store);
    return reading(dir).subarray(before);
  };
  const writes = {
    'a post': written((store) => store.post('s', { type: 'cancel', reason: '🧅' })),
    'an append at the same place': written((store) => store.append('s', 1, [text('lost 🧅')])),
  };

  it.each(Object.entries(writes))('D1, D13 does not disturb it, wherever %s is cut', (_, write) => {
    for (let cut = 1; cut < write.length; cut++) {
      const dir = newDir();
      const store = fileStore({ dir });
      store.append('s', 0, [text('a')]);
      fs.appendFileSync(path.join(dir, 's.jsonl'), write.subarray(0, cut));
      expect(store.append('s', 1, [text('b')]), `cut at ${cut}`).toBe(2);
      expect(store.append('s', 2, [text('c')])).toBe(3);
      for (const any of [store, fileStore({ dir })]) {
        expect(any.head('s')).toBe(3);
        expect(ids(any)).toEqual(['a', 'b', 'c']);
        expect(any.take('s', 0)).toEqual([]);
        expect(any.list().sessions).toMatchObject([{ sessionId: 's', seq: 3 }]);
        any.close();
      }
    }
  });

  it('lets posts, takes, a first append and a delete go on behind what it left', () => {
    const dir = newDir();
    const store = fileStore({ dir });
    const tear = () => fs.appendFileSync(path.join(dir, 's.jsonl'), writes['a post'].subarray(0, 20));
    store.post('s', { type: 'cancel', reason: 'first' });
    tear();
    store.append('s', 0, [text('a')]);
    tear();
    store.post('s', { type: 'cancel', reason: 'second' });
    tear();
    expect(store.take('s', 1)).toEqual([{ n: 2, item: { type: 'cancel', reason: 'second' } }]);
    tear();
    const other = fileStore({ dir });
    expect(ids(other)).toEqual(['a']);
    store.delete('s');
    expect(other.head('s')).toBe(0);
  });

  it('is like a write on a full disk: the same handle goes on behind that too', () => {
    const dir = newDir();
    const store = fileStore({ dir });
    store.append('s', 0, [text('a')]);
    const write = fs.writeSync;
    const full = vi
      .spyOn(fs, 'writeSync')
      .mockImplementationOnce(((fd: number, line: string) =>
        write(fd, line.slice(0, 30))) as typeof fs.writeSync);
    expect(() => store.append('s', 1, [text('b')])).toThrow('Only 30 bytes of an entry were written');
    full.mockRestore();
    expect(store.append('s', 1, [text('c')])).toBe(2);
    expect(ids(fileStore({ dir }))).toEqual(['a', 'c']);
  });
});

describe('fileStore, several handles', () => {
  it('lets the first of two appends at the same place count, though neither handle has seen the other', () => {
    const dir = newDir();
    const [one, two] = [fileStore({ dir }), fileStore({ dir })];
    one.append('s', 0, [text('a')]);
    expect(two.head('s')).toBe(1);
    // Both believe the session to be at 1.
    one.append('s', 1, [text('one')]);
    expect(() => two.append('s', 1, [text('two')])).toThrow('Session "s" is at entry 2, not 1');
    expect(ids(one)).toEqual(['a', 'one']);
    expect(ids(two)).toEqual(['a', 'one']);
    expect(two.append('s', 2, [text('two')])).toBe(3);
    expect(one.append('s', 3, [text('one again')])).toBe(4);
    expect(ids(fileStore({ dir }))).toEqual(['a', 'one', 'two', 'one again']);
  });

  it('lets the first of two first appends count, whenever the other handle comes', () => {
    const others: Record<string, (two: SyncStore) => void> = {
      append: (two) => two.append('s', 0, [text('two')]),
      'append and delete': (two) => {
        two.append('s', 0, [text('two')]);
        two.delete('s');
      },
      post: (two) => two.post('s', { type: 'cancel' }),
    };
    for (const [what, other] of Object.entries(others))
      for (const [when, before] of [
        ['after the look', (meanwhile: () => void) => meanwhile()],
        ['before the file is opened', (meanwhile: () => void) => interposed('openSync', meanwhile)],
        ['before the write', (meanwhile: () => void) => interposed('writeSync', meanwhile)],
      ] as const) {
        const dir = newDir();
        const [one, two] = [fileStore({ dir }), fileStore({ dir })];
        expect(one.head('s')).toBe(0);
        before(() => other(two));
        const append = () => one.append('s', 0, [text('one')]);
        if (what === 'append') expect(append, when).toThrow('Session "s" is at entry 1, not 0');
        else expect(append(), `${what} ${when}`).toBe(1);
        vi.restoreAllMocks();
        const expected = what === 'append' ? ['two'] : ['one'];
        for (const store of [one, two, fileStore({ dir })]) {
          expect(ids(store), `${what} ${when}`).toEqual(expected);
          expect(store.take('s', 0), `${what} ${when}`).toHaveLength(what === 'post' ? 1 : 0);
        }
        expect(one.append('s', 1, [text('next')])).toBe(2);
        expect(ids(two)).toEqual([...expected, 'next']);
      }
  });

  it('lets a post of another handle pass between two appends', async () => {
    const dir = newDir();
    const [one, two] = [fileStore({ dir }), fileStore({ dir })];
    one.append('s', 0, [text('a')]);
    two.post('s', { type: 'cancel', reason: 'enough' });
    expect(one.append('s', 1, [text('b')])).toBe(2);
    expect(one.take('s', 0)).toEqual([{ n: 1, item: { type: 'cancel', reason: 'enough' } }]);
  });

  it('does not write into the file of a session that was deleted and made again', () => {
    const dir = newDir();
    const [one, two] = [fileStore({ dir }), fileStore({ dir })];
    one.append('s', 0, [text('a'), text('b')]);
    two.delete('s');
    two.append('s', 0, [text('new')]);
    expect(() => one.append('s', 2, [text('x')])).toThrow('Session "s" is at entry 1, not 2');
    expect(ids(two)).toEqual(['new']);
    two.append('s', 1, [text('newer')]);
    two.delete('s');
    two.append('s', 0, [text('newest')]);
    // The place happens to be the right one, though in another file than the handle has open.
    expect(one.append('s', 1, [text('c')])).toBe(2);
    expect(ids(two)).toEqual(['newest', 'c']);
  });

  it('holds no more than 512 files open and still knows where each session stands', () => {
    const dir = newDir();
    const [one, two] = [fileStore({ dir }), fileStore({ dir })];
    const open = () => fs.readdirSync('/proc/self/fd').length;
    const before = process.platform === 'linux' ? open() : 0;
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 600; i++) expect(one.append(`s${i}`, round, [text(`${round}`)])).toBe(round + 1);
    }
    if (process.platform === 'linux') expect(open() - before).toBeLessThanOrEqual(512);
    // Session 0 rests by now: what happens to its file meanwhile must not go unnoticed.
    two.delete('s0');
    expect(() => one.append('s0', 2, [text('x')])).toThrow('Session "s0" is at entry 0, not 2');
    one.close();
    if (process.platform === 'linux') expect(open()).toBeLessThanOrEqual(before);
  });
});

describe('fileStore, bad input', () => {
  const file = (content: string): SyncStore => {
    const dir = newDir();
    fs.mkdirSync(dir);
    fs.writeFileSync(path.join(dir, 's.jsonl'), content);
    return fileStore({ dir });
  };

  it('refuses a file with a gap, a foreign line or a broken line, and names the file', () => {
    const gap = file('{"seq":1,"n":1,"w":"a","id":"s","e":[{"v":1}]}\n{"seq":3,"n":1,"w":"a","e":[{}]}\n');
    expect(() => gap.head('s')).toThrow(
      /The journal .*s\.jsonl was changed by something else, or damaged: entry 3 follows entry 1\. Restore/,
    );
    expect(() => file('hello\n').head('s')).toThrow('it has the line "hello"');
    expect(() => file('{"seq":1,"n":1,"w":"a","id":"s","e":[{"v":}]}\n').head('s')).toThrow(
      'it has a line that is not JSON',
    );
    expect(() => gap.head('s')).toThrow(expect.objectContaining({ code: 'SESSION_CORRUPT' }));
  });

  it('D1 refuses a file in which confirmed entries are missing or changed, also between others', () => {
    const dir = newDir();
    const store = fileStore({ dir });
    for (const [seq, id] of ['a', 'b', 'c'].entries()) store.append('s', seq, [text(id)]);
    const whole = reading(dir).toString();
    const line = linesOf(dir)[1]!;
    const read = (changed: string) => file(whole.replace(line, changed)).read('s', 1);
    expect(read(line)).toHaveLength(3);
    // Cut short, as a whole, in part, in the number of its entries, at its end, and run into the next.
    for (const changed of [
      `${line.slice(0, 60)} `,
      '',
      line.slice(0, 60),
      line.replace(/"s":.*/, '"s":[]}'),
      `${line.slice(0, -1)} `,
      `${line}${line}`,
    ])
      expect(() => read(changed), changed).toThrow(expect.objectContaining({ code: 'SESSION_CORRUPT' }));
  });

  it('lists a damaged session with what can be read of it, beside the others', () => {
    const dir = newDir();
    const store = fileStore({ dir });
    const damage = (session: string, change: (whole: string) => string) => {
      const name = path.join(dir, `${session}.jsonl`);
      fs.writeFileSync(name, change(fs.readFileSync(name, 'utf8')));
    };
    for (const session of ['fine', 'end', 'gap', 'beginning'])
      for (let seq = 0; seq < 3; seq++) store.append(session, seq, [{ ...text(`${seq}`), at: 10 + seq }]);
    store.close();
    damage('end', (whole) => `${whole.slice(0, -20)}\n`);
    damage('gap', (whole) => whole.replace(/\{"seq":2.*/, ''));
    damage('beginning', (whole) => whole.replace('"seq":1', '"seq":I'));
    const changed = Math.trunc(fs.statSync(path.join(dir, 'beginning.jsonl')).mtimeMs);
    const { sessions } = store.list();
    expect(sessions.map(({ sessionId, seq, updatedAt }) => [sessionId, seq, updatedAt])).toEqual([
      ['beginning', 0, changed],
      ['fine', 3, 12],
      ['end', 2, 11],
      ['gap', 1, 10],
    ]);
    for (const session of ['end', 'gap', 'beginning'])
      expect(() => store.read(session, 1)).toThrow(
        expect.objectContaining({
          code: 'SESSION_CORRUPT',
          message: expect.stringContaining(`${session}.jsonl`),
        }),
      );
    store.delete('beginning');
    expect(store.append('beginning', 0, [text('anew')])).toBe(1);
  });

  it('lists a session whose id is not the name of its file, however much of the beginning is damaged', () => {
    const dir = newDir();
    const store = fileStore({ dir });
    store.append('Ann/"1"', 0, [text('a')]);
    store.append('Ann/"1"', 1, [text('b')]);
    const [name] = fs.readdirSync(dir);
    const whole = fs.readFileSync(path.join(dir, name!), 'utf8');
    const listed = (content: string) => {
      fs.writeFileSync(path.join(dir, name!), content);
      store.close();
      return store.list().sessions.map(({ sessionId }) => sessionId);
    };
    expect(listed(whole.replace('"seq":1', '"seq":I'))).toEqual(['Ann/"1"']);
    expect(listed(whole.replace('"v":1', '"v":'))).toEqual(['Ann/"1"']);
    // Another id than the one that the file is named after is none that can be relied on.
    for (const lost of [whole.replace('"seq":1', '"seq":I').replace('Ann', 'Bob'), 'hello\n']) {
      const [id, ...others] = listed(lost);
      expect([`${id}.jsonl`, others]).toEqual([name, []]);
      expect(() => store.read(id!, 1)).toThrow(expect.objectContaining({ code: 'SESSION_CORRUPT' }));
      expect(() => store.append(id!, 0, [text('x')])).toThrow('damaged');
      expect(() => store.read('Ann/"1"', 1)).toThrow('damaged');
    }
    store.delete(name!.replace('.jsonl', ''));
    expect(fs.readdirSync(dir)).toEqual([]);
  });

  it('does not list files that cannot be sessions', () => {
    const dir = newDir();
    const store = fileStore({ dir });
    for (const name of ['My Notes', 'notes', 'con', 'a.b', '-x', 'Ann~1234', 'ä'])
      fs.writeFileSync(path.join(dir, `${name}.jsonl`), 'hello\n');
    const listed = () => store.list().sessions.map(({ sessionId }) => sessionId);
    expect(listed()).toEqual(['notes']);
    store.append('My Notes', 0, [text('a')]);
    expect(listed().sort()).toEqual(['My Notes', 'notes']);
    const damaged = fs.readFileSync(path.join(dir, `${fileName('My Notes')}.jsonl`), 'utf8');
    fs.writeFileSync(path.join(dir, 'My Notes.jsonl'), `${damaged}hello\n`);
    expect(listed().sort()).toEqual(['My Notes', 'notes']);
  });

  it("does not take a session's id from the file name while the file itself can be read", () => {
    const dir = newDir();
    const store = fileStore({ dir });
    store.append('Ann', 0, [text('a')]);
    const name = fs.readdirSync(dir)[0]!.replace('.jsonl', '');
    expect(store.head(name)).toBe(0);
    store.delete(name);
    store.append(name, 0, [text('b')]);
    expect([ids(store, 'Ann'), ids(store, name)]).toEqual([['a'], ['b']]);
  });

  it('lists a session whose entries have no time, but none that has only an inbox or a torn entry', () => {
    const line = '{"seq":1,"n":1,"w":"a","id":"s","e":[{"v":1}]}\n';
    expect(file(line).list().sessions).toMatchObject([{ sessionId: 's', seq: 1 }]);
    expect(file(line.replace('"n":1', '"n":0').replace('{"v":1}', '')).list().sessions).toMatchObject([
      { sessionId: 's', seq: 0 },
    ]);
    expect(file(`${line.slice(0, 20)} \n{"post":{"type":"cancel"}}\n`).list().sessions).toEqual([]);
    expect(file('').list().sessions).toEqual([]);
  });

  it('deletes a damaged session', () => {
    const store = file('hello\n');
    store.delete('s');
    expect(store.head('s')).toBe(0);
  });

  it('refuses options and ids it cannot use', () => {
    expect(() => fileStore({ dir: '' })).toThrow('Expected `dir` to be the path of a directory, got "".');
    expect(() => fileStore({ dir: newDir(), fsync: 'sometimes' as 'never' })).toThrow(
      "Expected `fsync` to be 'always', 'run-end' or 'never', got \"sometimes\".",
    );
    expect(() => fileStore({ dir: newDir(), fsyn: 'never' } as never)).toThrow(
      'Unknown option `fsyn` of fileStore(). Did you mean `fsync`?',
    );
    expect(() => fileStore({ dir: newDir() }).head('a\0b')).toThrow(
      'Expected `sessionId` to be well-formed text without NUL characters',
    );
  });

  it('keeps an append that cannot be JSON out of the file', () => {
    const store = fileStore({ dir: newDir() });
    expect(() =>
      store.append('s', 0, [{ v: 1, at: 1, type: 'state', cell: 'c', version: 1, value: 1n }]),
    ).toThrow('BigInt');
    expect(store.head('s')).toBe(0);
  });
});

describe('fileStore, sizes', () => {
  it('adds to the file only what is new', () => {
    const dir = newDir();
    const store = fileStore({ dir });
    const added = (seq: number): number => {
      const before = seq === 0 ? 0 : reading(dir).length;
      store.append('s', seq, [text('same')]);
      return reading(dir).length - before;
    };
    const sizes = Array.from({ length: 1000 }, (_, seq) => added(seq));
    // The number itself grows by a digit at 10, 100 and 1000.
    expect(sizes[999]! - sizes[10]!).toBeLessThanOrEqual(2);
    expect(sizes[999]).toBeLessThanOrEqual(2 * JSON.stringify(text('same')).length);
  });
});

describe('fileStore, checksums', () => {
  /** A session with two appends and a posted item, and its lines. */
  function written(): { dir: string; file: string; lines: string[] } {
    const dir = newDir();
    const store = fileStore({ dir });
    store.append('s', 0, [text('first'), text('second')]);
    store.append('s', 2, [text('third')]);
    store.post('s', { type: 'cancel', reason: 'enough' });
    store.close();
    const file = path.join(dir, 's.jsonl');
    const lines = fs
      .readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('{'));
    return { dir, file, lines };
  }

  it('end every line', () => {
    for (const line of written().lines) expect(line).toMatch(/,"c":"[0-9a-f]{8}"\}$/);
  });

  it('find every byte that was changed in a line', () => {
    const { dir, file, lines } = written();
    const whole = fileStore({ dir });
    const all = [...whole.read('s', 1), ...whole.take('s', 0)];
    whole.close();
    for (let n = 0; n < lines.length; n++)
      for (let at = 0; at < lines[n]!.length; at++) {
        const changed = [...lines];
        const byte = lines[n]!.charCodeAt(at);
        changed[n] = lines[n]!.slice(0, at) + String.fromCharCode(byte ^ 1) + lines[n]!.slice(at + 1);
        fs.writeFileSync(file, `${changed.join('\n')}\n`);
        const store = fileStore({ dir });
        let read: readonly unknown[] = [];
        try {
          read = [...store.read('s', 1), ...store.take('s', 0)];
        } catch (error) {
          expect(error).toMatchObject({ code: 'SESSION_CORRUPT' });
        }
        store.close();
        // Read are the things that were written, or nothing: the checksum itself may be what was hit.
        if (read.length > 0) expect(read, `line ${n}, byte ${at}`).toEqual(all);
      }
  });

  it('are not needed in older lines, and appear in the lines after them', () => {
    const { dir, file, lines } = written();
    const old = lines.map((line) => line.replace(/,"c":"[0-9a-f]{8}"\}$/, '}'));
    fs.writeFileSync(file, `${old.join('\n')}\n`);
    const store = fileStore({ dir });
    expect(store.read('s', 1)).toHaveLength(3);
    expect(store.take('s', 0)).toHaveLength(1);
    store.append('s', 3, [text('fourth')]);
    store.close();
    expect(fileStore({ dir }).read('s', 1)).toHaveLength(4);
    // One that lost its checksum behind those that have one is damaged.
    fs.writeFileSync(file, `${[lines[0], old[1], lines[2]].join('\n')}\n`);
    expect(() => fileStore({ dir }).read('s', 1)).toThrow(
      expect.objectContaining({
        code: 'SESSION_CORRUPT',
        message: expect.stringContaining('the checksum of the line'),
      }),
    );
  });
});

describe.skipIf(process.platform === 'win32')('fileStore, files of others', () => {
  const mode = (file: string) => fs.statSync(file).mode & 0o777;

  it('makes files that only its user can read', () => {
    const dir = path.join(newDir(), 'made');
    const store = fileStore({ dir });
    store.append('s', 0, [text('a')]);
    expect([mode(dir), mode(path.join(dir, 's.jsonl'))]).toEqual([0o700, 0o600]);
  });

  it.each([
    ['a link to a file', (place: string, victim: string) => fs.symlinkSync(victim, place)],
    [
      'a link to nothing',
      (place: string, victim: string) => {
        fs.rmSync(victim);
        fs.symlinkSync(victim, place);
      },
    ],
    ['a link to a folder', (place: string, victim: string) => fs.symlinkSync(path.dirname(victim), place)],
    ['a folder', (place: string) => fs.mkdirSync(place)],
    ['a pipe', (place: string) => execFileSync('mkfifo', [place])],
  ])('does not write to, read or list %s in the place of a session', (_, plant) => {
    const dir = newDir();
    const victim = path.join(newDir(), 'victim.jsonl');
    for (const made of [dir, path.dirname(victim)]) fs.mkdirSync(made);
    fs.writeFileSync(victim, 'precious\n');
    const place = path.join(dir, 's.jsonl');
    plant(place, victim);
    const store = fileStore({ dir });
    const code = expect.objectContaining({ code: 'STORE_FAILED' });
    expect(() => store.append('s', 0, [text('a')])).toThrow(code);
    expect(() => store.post('s', { type: 'cancel' })).toThrow(code);
    expect(store.list().sessions).toEqual([]);
    store.append('t', 0, [text('b')]);
    expect(store.list().sessions).toHaveLength(1);
    if (!fs.statSync(place, { throwIfNoEntry: false })?.isDirectory() || fs.lstatSync(place).isSymbolicLink())
      store.delete('s');
    if (fs.existsSync(victim)) expect(fs.readFileSync(victim, 'utf8')).toBe('precious\n');
    expect(fs.readdirSync(path.dirname(victim)).length).toBeLessThanOrEqual(1);
  });
});
