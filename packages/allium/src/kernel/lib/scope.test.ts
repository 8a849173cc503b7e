import { fakeClock } from 'allium/testing';
import { describe, expect, it, vi } from 'vitest';
import { Scope, supervised, untilAborted } from './scope.js';

describe('Scope', () => {
  it('aborts everything further in, with its reason, and nothing further out', () => {
    const run = new Scope();
    const [call, sibling] = [new Scope(run), new Scope(run)];
    const attempt = new Scope(call);
    call.abort('enough');
    expect([run.aborted, sibling.aborted, call.reason, attempt.reason]).toEqual([
      false,
      false,
      'enough',
      'enough',
    ]);
    run.abort('all');
    expect([sibling.reason, call.reason]).toEqual(['all', 'enough']);
  });

  it('keeps the first reason', () => {
    const scope = new Scope();
    scope.abort('first');
    scope.abort('second');
    expect(scope.reason).toBe('first');
  });

  it('creates its signal when it is first read, aborted or not', () => {
    const run = new Scope();
    const call = new Scope(run);
    const { signal } = call;
    expect(call.signal).toBe(signal);
    expect(signal.aborted).toBe(false);
    const reason = new Error('enough');
    run.abort(reason);
    expect(signal.reason).toBe(reason);
    expect(new Scope(run).signal.reason).toBe(reason);
  });

  it('calls each listener once, in the order they were added, through any number of scopes', () => {
    const run = new Scope();
    let inner = run;
    for (let depth = 0; depth < 5; depth++) inner = new Scope(inner);
    const told: string[] = [];
    run.onAbort(() => told.push('run'));
    inner.onAbort((reason) => told.push(`first ${reason}`));
    inner.onAbort(() => told.push('second'));
    run.abort('x');
    run.abort('y');
    expect(told).toEqual(['run', 'first x', 'second']);
  });

  it('calls a listener at once if it is added too late', () => {
    const scope = new Scope();
    scope.abort('gone');
    const late = vi.fn();
    scope.onAbort(late);
    expect(late).toHaveBeenCalledExactlyOnceWith('gone');
  });

  it('does not call removed listeners, even if they are removed while it calls others', () => {
    const run = new Scope();
    const call = new Scope(run);
    const [early, mutual] = [vi.fn(), vi.fn()];
    call.onAbort(early)();
    call.onAbort(() => off());
    const off = call.onAbort(mutual);
    run.abort('x');
    expect(early).not.toHaveBeenCalled();
    expect(mutual).not.toHaveBeenCalled();
  });

  it('calls nobody once it is closed, and can be listened to again', () => {
    const run = new Scope();
    const call = new Scope(run);
    const [closed, open, again] = [vi.fn(), vi.fn(), vi.fn()];
    const off = call.onAbort(closed);
    run.onAbort(open);
    call.close();
    off();
    call.onAbort(again);
    run.abort('x');
    expect(closed).not.toHaveBeenCalled();
    expect(open).toHaveBeenCalledTimes(1);
    expect(again).toHaveBeenCalledTimes(1);
  });

  it('calls only listeners in it or further in', () => {
    const run = new Scope();
    const [call, sibling] = [new Scope(run), new Scope(run)];
    const told: string[] = [];
    new Scope(call).onAbort(() => told.push('attempt'));
    sibling.onAbort(() => told.push('sibling'));
    run.onAbort(() => told.push('run'));
    call.abort('x');
    expect(told).toEqual(['attempt']);
    run.abort('y');
    expect(told).toEqual(['attempt', 'sibling', 'run']);
  });

  it('keeps no reference to a listener that was removed, called or closed', () => {
    const run = new Scope();
    const call = new Scope(run);
    const held = () => (run as unknown as { listeners: { first: unknown; last: unknown } }).listeners;
    const off = call.onAbort(() => {});
    expect(held().first).toBe(held().last);
    expect(held().first).toBeDefined();
    off();
    expect(held()).toEqual({ first: undefined, last: undefined });
    call.onAbort(() => {});
    call.close();
    expect(held()).toEqual({ first: undefined, last: undefined });
    call.onAbort(() => {});
    call.abort('x');
    expect(held()).toEqual({ first: undefined, last: undefined });
  });
});

describe('untilAborted', () => {
  it('settles like the promise, or rejects with the reason and drops what comes later', async () => {
    expect(await untilAborted(Promise.resolve(1), new Scope())).toBe(1);
    await expect(untilAborted(Promise.reject(new Error('own')), new Scope())).rejects.toThrow('own');
    const scope = new Scope();
    let reject = (_: Error): void => {};
    const waiting = untilAborted(
      new Promise((_, no) => {
        reject = no;
      }),
      scope,
    );
    scope.abort(new Error('enough'));
    reject(new Error('late'));
    await expect(waiting).rejects.toThrow('enough');
  });
});

describe('supervised', () => {
  it('gives work a moment to finish after an abort', async () => {
    const clock = fakeClock();
    const scope = new Scope();
    let resolve = (_: string): void => {};
    const winding = supervised(
      new Promise<string>((yes) => {
        resolve = yes;
      }),
      scope,
      clock.setTimer,
      100,
    );
    scope.abort(new Error('enough'));
    await clock.advance(99);
    resolve('wound down');
    expect(await winding).toBe('wound down');
    expect(clock.pending).toBe(0);
  });

  it('stops waiting for work that ignores its signal', async () => {
    const clock = fakeClock();
    const scope = new Scope();
    const deaf = supervised(new Promise(() => {}), scope, clock.setTimer, 100).catch(
      (error: Error) => error.message,
    );
    scope.abort(new Error('enough'));
    await clock.advance(100);
    expect(await deaf).toBe('enough');
  });
});
