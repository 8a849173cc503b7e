import { Aborted, AlliumError, attribution, ERROR_CODES, isControl, RunError, StopRun } from 'allium';
import { describe, expect, it } from 'vitest';
import { controlKind, RestartTurn, Suspension } from '../protocol/signals.js';
import { attribute, closestName, isThenable, messageOf, shown } from './errors.js';
import { checkKeys } from './shapes.js';

describe('coded errors', () => {
  it('carry a code, data and a cause', () => {
    const cause = new Error('cause');
    const error = new AlliumError('INVALID_OPTION', 'wrong', { cause, data: { option: 'x' } });
    expect(error).toMatchObject({
      name: 'AlliumError',
      code: 'INVALID_OPTION',
      message: 'wrong',
      cause,
      data: { option: 'x' },
    });
    expect('cause' in new AlliumError('INVALID_OPTION', 'wrong')).toBe(false);
    expect(new RunError('ABORTED', 'x', {} as never, cause)).toMatchObject({
      name: 'RunError',
      code: 'ABORTED',
      cause,
    });
  });

  it('are all described', () => {
    for (const [code, text] of Object.entries(ERROR_CODES)) {
      expect(code).toMatch(/^[A-Z]+(_[A-Z]+)*$/);
      expect(text).toMatch(/^[A-Z].*\.$/);
    }
  });
});

describe('control signals', () => {
  it('are recognised by brand, not by class', () => {
    const brand = Symbol.for('allium.control');
    expect(
      [new StopRun(), new Suspension({}), new Aborted(), new RestartTurn(undefined)].map(controlKind),
    ).toEqual(['stop', 'suspend', 'abort', 'restart']);
    expect(controlKind({ [brand]: 'stop' })).toBe('stop');
    for (const other of [new Error('x'), { name: 'StopRun' }, 'stop', null, undefined, 5])
      expect(isControl(other)).toBe(false);
  });

  it('say what they are about', () => {
    expect(new StopRun()).toMatchObject({ reason: 'stopped', message: 'The run was stopped: stopped.' });
    expect(new StopRun('loop', 'why')).toMatchObject({ reason: 'loop', message: 'why' });
    const cause = new Error('left');
    expect(new Aborted(cause)).toMatchObject({ name: 'AbortError', message: 'left', cause });
    expect(new Aborted('text').message).toBe('text');
    expect(new Aborted().message).toBe('The run was aborted.');
  });
});

describe('attribution', () => {
  it('is kept beside the error, and the first note counts', () => {
    const error = Object.freeze(new Error('x'));
    expect(attribution(error)).toBeUndefined();
    attribute(error, { middleware: 'a', hook: 'wrapModel' });
    attribute(error, { middleware: 'b', hook: 'afterModel' });
    attribute(error, { hook: 'model', attempts: 3 });
    expect(attribution(error)).toEqual({ middleware: 'a', hook: 'wrapModel' });
  });

  it('starts again when a model or tool throws the same object again', () => {
    const error = new Error('x');
    attribute(error, { hook: 'model', attempts: 1 }, undefined, { final: true });
    attribute(error, { hook: 'model', attempts: 2 });
    expect(attribution(error)).toEqual({ hook: 'model', attempts: 2 });
  });

  it('knows nothing about values that are not objects', () => {
    attribute('text', { hook: 'model' });
    expect(attribution('text')).toBeUndefined();
  });
});

describe('messages', () => {
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;

  it.each([
    ['text', '"text"'],
    ['x'.repeat(100), `"${'x'.repeat(77)}..."`],
    [5n, '5n'],
    [undefined, 'undefined'],
    [null, 'null'],
    [function named() {}, 'a function (named)'],
    [{ a: 1 }, '{"a":1}'],
    [cycle, '[object Object]'],
  ])('show %o as %s', (value, text) => {
    expect(shown(value)).toBe(text);
  });

  it('say what was thrown, whatever it was', () => {
    expect([new Error('x'), 'text', { a: 1 }].map(messageOf)).toEqual(['x', 'text', '{"a":1}']);
    const long = { text: 'x'.repeat(500) };
    expect(messageOf(long)).toBe(JSON.stringify(long));
    expect([undefined, null, 1n].map(messageOf)).toEqual(['undefined', 'null', '1n']);
  });

  it('name the nearest allowed key', () => {
    expect(() => checkKeys('thing', { attemps: 1 }, ['attempts', 'delay'])).toThrow(
      'Unknown option `attemps` of thing. Did you mean `attempts`? It takes: attempts, delay.',
    );
    expect(() => checkKeys('thing', { zzz: 1 }, ['attempts'])).toThrow(
      'Unknown option `zzz` of thing. It takes: attempts.',
    );
    expect(() => checkKeys('thing', { attempts: 1 }, ['attempts'])).not.toThrow();
  });

  it.each([
    ['before_model', 'beforeModel'],
    ['beforeModle', 'beforeModel'],
    ['arg', 'args'],
    ['x', undefined],
    ['somethingElse', undefined],
  ])('find for %s the candidate %s', (word, candidate) => {
    expect(closestName(word, ['beforeModel', 'args'])).toBe(candidate);
  });
});

it('isThenable() is true for anything with a then method', () => {
  const thenable = Object.defineProperty({}, 'then', { value: () => {} });
  const almost = Object.defineProperty({}, 'then', { value: 5 });
  expect([Promise.resolve(), thenable].map((value) => isThenable(value as unknown))).toEqual([true, true]);
  expect([undefined, null, 5, {}, almost].map((value) => isThenable(value as unknown))).not.toContain(true);
});
