import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { Agent, type InboxItem, type NewEntry, textOf, tool, userMessage } from '../../index.js';
import { scriptedModel, text, toolCalls } from '../../testing/index.js';
import { fileStore } from '../file/index.js';
import { memoryStore } from '../memory/index.js';
import { sqliteStore } from '../sqlite/index.js';
import { endMoment, Looks, moment } from './index.js';

const over = () => new Promise((resolve) => setImmediate(resolve));
const entry: NewEntry = {
  v: 2,
  at: 1,
  type: 'message',
  runId: 'r',
  message: { id: 'm', role: 'user', content: [] },
};
const cancel: InboxItem = { type: 'cancel' };

describe('a moment', () => {
  it('lasts until the process waits', async () => {
    const begun = moment();
    await Promise.resolve();
    expect(moment()).toBe(begun);
    await over();
    expect(moment()).not.toBe(begun);
  });

  it('ends when something is posted', () => {
    const begun = moment();
    endMoment();
    expect(moment()).not.toBe(begun);
  });
});

describe('a look into an inbox', () => {
  const asks = (answer: string) => {
    const asked: string[] = [];
    const ask = async () => {
      asked.push(answer);
      return [answer];
    };
    return { asked, ask };
  };

  it('comes with an append, for a moment', async () => {
    const looks = new Looks<string>();
    const { asked, ask } = asks('asked');
    await looks.appended('s', Promise.resolve(['appended']));
    expect(await looks.look('s', ask)).toEqual(['appended']);
    expect(await looks.look('another', ask)).toEqual(['asked']);
    await looks.appended('s', Promise.resolve(['appended']));
    await over();
    expect(await looks.look('s', ask)).toEqual(['asked']);
    expect(asked.length).toBe(2);
  });

  it.each([
    ['an append that failed', () => Promise.reject(new Error('refused'))],
    ['an append that was not made', async () => undefined],
  ])('does not come with %s', async (_, append) => {
    const looks = new Looks<string>();
    const { ask } = asks('asked');
    const looking = looks.look('s', ask);
    await looks.appended('s', append()).catch(() => {});
    expect(await looking).toEqual(['asked']);
    expect(await looks.look('s', ask)).toEqual(['asked']);
  });

  it('does not count if something was posted while the append was under way', async () => {
    const looks = new Looks<string>();
    let answer = (_: string[]): void => {};
    const appended = looks.appended('s', new Promise((resolve) => (answer = resolve)));
    endMoment();
    answer([]);
    await appended;
    expect(await looks.look('s', asks('posted').ask)).toEqual(['posted']);
  });

  it('waits for an append that is asked for after it, not for one before', async () => {
    const looks = new Looks<string>();
    const { asked, ask } = asks('asked');
    const looking = looks.look('s', ask);
    const appended = looks.appended(
      's',
      over().then(() => ['appended']),
    );
    expect(await looking).toEqual(['appended']);
    await appended;
    await over();
    let end = (_: string[]): void => {};
    const before = looks.appended('s', new Promise((resolve) => (end = resolve)));
    expect(await looks.look('s', ask)).toEqual(['asked']);
    expect(asked.length).toBe(1);
    end(['before']);
    await before;
  });
});

const dirs: string[] = [];
const folder = (): string => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'allium-moments-'));
  dirs.push(dir);
  return dir;
};
it('an inbox in a file that was closed since the append is still read', () => {
  const store = fileStore({ dir: folder() });
  store.post('s', cancel);
  store.append('s', 0, [entry]);
  for (let i = 0; i < 600; i++) store.append(`${i}`, 0, [entry]);
  expect(store.take('s', 1)).toEqual([]);
  store.post('s', cancel);
  expect(store.take('s', 1).map(({ n }) => n)).toEqual([2]);
  store.close();
  for (const dir of dirs.splice(0)) fs.rmSync(dir, { recursive: true, force: true });
});

describe.each([
  ['memory', () => [memoryStore()].flatMap((store) => [store, store])],
  ['file', () => [folder()].flatMap((dir) => [fileStore({ dir }), fileStore({ dir })])],
  [
    'SQLite',
    () => [`${folder()}/s.db`].flatMap((file) => [sqliteStore({ path: file }), sqliteStore({ path: file })]),
  ],
])('in the moment of an append, the %s store', (_, open) => {
  it('sees what this handle or another one posts, forgets or deletes', () => {
    const [one, two] = open() as [ReturnType<typeof memoryStore>, ReturnType<typeof memoryStore>];
    let seq = one.append('s', 0, [entry]);
    expect(one.take('s', 0)).toEqual([]);
    for (const [i, handle] of [one, two, one, two].entries()) {
      seq = one.append('s', seq, [entry]);
      handle.post('s', cancel);
      expect(one.take('s', 0).length).toBe(i + 1);
    }
    seq = one.append('s', seq, [{ v: 2, at: 1, type: 'inbox', cursor: 4, waits: [2] }]);
    expect(one.take('s', 1).map(({ n }) => n)).toEqual([2]);
    expect(one.take('s', 2)).toEqual([]);
    seq = one.append('s', seq, [entry]);
    two.post('s', cancel);
    expect(one.take('s', 2).map(({ n }) => n)).toEqual([5]);
    one.append('s', seq, [entry]);
    two.delete('s');
    expect(one.take('s', 0)).toEqual([]);
    for (const store of new Set([one, two])) store.close();
    for (const dir of dirs.splice(0)) fs.rmSync(dir, { recursive: true, force: true });
  });

  it('lets the next turn hear what a tool posted', async () => {
    const [store, other] = open() as [ReturnType<typeof memoryStore>, ReturnType<typeof memoryStore>];
    let calls = 0;
    const steer = tool({
      name: 'steer',
      description: 'Steers.',
      input: { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } },
      toJsonSchema: () => ({ type: 'object' }),
      execute() {
        (++calls === 2 ? other : store).post('s', {
          type: 'steer',
          message: userMessage(`steering ${calls}`),
        });
        return 'done';
      },
    });
    const call = () => toolCalls({ name: 'steer', args: {} });
    const model = scriptedModel([call(), call(), call(), text('end')]);
    await new Agent({ model, tools: [steer], store }).session('s').run('go');
    const heard = model.requests.map(({ messages }) => textOf(messages.at(-1)!));
    expect(heard).toEqual(['go', 'steering 1', 'steering 2', 'steering 3']);
    for (const one of new Set([store, other])) one.close();
    for (const dir of dirs.splice(0)) fs.rmSync(dir, { recursive: true, force: true });
  });
});
