import { describe, expect, it } from 'vitest';
import { Batches } from './batches.js';

/** Batches whose statements end when the test says so. */
function held(parallel = 1) {
  const sent: { readonly batch: readonly string[]; end(error?: unknown): void }[] = [];
  const batches = new Batches<string, string>({
    send: (batch) =>
      new Promise((resolve, reject) => {
        const end = (error?: unknown) =>
          error === undefined ? resolve(batch.map((one) => one.toUpperCase())) : reject(error);
        sent.push({ batch, end });
      }),
    key: (asked) => asked[0]!,
    parallel,
  });
  return { sent, batches };
}
const settle = () => new Promise((resolve) => setImmediate(resolve));
const refused = (code: string) => Object.assign(new Error(code), { code });

describe('batches', () => {
  it('collect requests while another batch is under way, and answer each', async () => {
    const { sent, batches } = held();
    const asked = ['a', 'b', 'c'].map((one) => batches.ask(one));
    expect(sent.map(({ batch }) => batch)).toEqual([['a']]);
    sent[0]!.end();
    await settle();
    expect(sent.map(({ batch }) => batch)).toEqual([['a'], ['b', 'c']]);
    sent[1]!.end();
    expect(await Promise.all(asked)).toEqual(['A', 'B', 'C']);
  });

  it('have each session once: its second request waits for the next batch', async () => {
    const { sent, batches } = held();
    for (const one of ['x', 'a1', 'a2', 'b', 'a3']) void batches.ask(one);
    for (let i = 0; i < 4; i++) {
      sent[i]!.end();
      await settle();
    }
    expect(sent.map(({ batch }) => batch)).toEqual([['x'], ['a1', 'b'], ['a2'], ['a3']]);
  });

  it('are limited in how many run at once', () => {
    const { sent, batches } = held(2);
    for (const one of ['a', 'b', 'c']) void batches.ask(one);
    expect(sent.map(({ batch }) => batch)).toEqual([['a'], ['b']]);
  });

  it('hold at most a hundred requests', async () => {
    const { sent, batches } = held();
    const keys = Array.from({ length: 150 }, (_, i) => String.fromCodePoint(0x4e00 + i));
    for (const one of ['first', ...keys]) void batches.ask(one);
    sent[0]!.end();
    await settle();
    expect(sent[1]!.batch.length).toBe(100);
  });

  it('refused by the server are sent one by one, so that only the faulty request fails', async () => {
    const { sent, batches } = held();
    const asked = ['x', 'a', 'b'].map((one) => batches.ask(one).catch(({ message }) => message));
    sent[0]!.end();
    await settle();
    sent[1]!.end(refused('22003'));
    await settle();
    sent[2]!.end(refused('22003'));
    await settle();
    sent[3]!.end();
    expect(await Promise.all(asked)).toEqual(['X', '22003', 'B']);
    expect(sent.map(({ batch }) => batch)).toEqual([['x'], ['a', 'b'], ['a'], ['b']]);
  });

  it.each(['ECONNRESET', '57P01', '08006'])(
    'cut off by %s fail as a whole, because nobody knows what was done',
    async (code) => {
      const { sent, batches } = held();
      const asked = ['x', 'a', 'b'].map((one) => batches.ask(one).catch(({ message }) => message));
      sent[0]!.end();
      await settle();
      sent[1]!.end(refused(code));
      expect(await Promise.all(asked)).toEqual(['X', code, code]);
      expect(sent.length).toBe(2);
    },
  );
});
