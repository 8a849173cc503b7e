import { describe, expect, it } from 'vitest';
import { untilAborted } from './until-aborted.js';

describe('untilAborted', () => {
  it('settles like the work if nobody aborts, and then releases the signal', async () => {
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: unknown[]) => {
      listeners++;
      add(...(args as Parameters<typeof add>));
    };
    signal.removeEventListener = (...args: unknown[]) => {
      listeners--;
      remove(...(args as Parameters<typeof remove>));
    };
    expect(await untilAborted(Promise.resolve(1), signal)).toBe(1);
    await expect(untilAborted(Promise.reject(new Error('no')), signal)).rejects.toThrow('no');
    expect(listeners).toBe(0);
  });

  it('rejects with the reason of the signal, before and during the work', async () => {
    const reason = new Error('enough');
    await expect(untilAborted(Promise.resolve(1), AbortSignal.abort(reason))).rejects.toBe(reason);
    const abort = new AbortController();
    const waiting = untilAborted(new Promise(() => {}), abort.signal);
    abort.abort(reason);
    await expect(waiting).rejects.toBe(reason);
  });
});
