import {
  Agent,
  type AgentEvent,
  assistantMessage,
  defineMiddleware,
  type Guard,
  type GuardPoint,
  type GuardVerdict,
  type Middleware,
  type Span,
  tool,
  toolResult,
  type Verdict,
  window,
} from 'allium';
import { chunks, collect, type Script, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const find = (given: string): Span[] =>
  [...given.matchAll(/SECRET|PIN/g)].map((m) => ({
    start: m.index,
    end: m.index + m[0].length,
    kind: m[0] === 'PIN' ? 'pin' : 'secret',
    severity: m[0] === 'PIN' ? 'high' : 'low',
  }));
const guarding = (guard: Guard, name = 'watch'): Middleware => defineMiddleware({ name, guard });

const act = tool({
  name: 'act',
  description: 'Acts.',
  input: z.any(),
  execute: () => toolResult({ content: 'did SECRET', details: { pin: 'PIN' } }),
});

async function verdictsOf(script: readonly Script[], input: string, ...middleware: Middleware[]) {
  const seen: AgentEvent[] = [];
  const observers = [(event: AgentEvent) => void seen.push(event)];
  const agent = new Agent({ model: scriptedModel(script), middleware, tools: [act], observers });
  const { events, result } = await collect(agent.stream(input));
  const told = events.flatMap((one) => (one.type === 'guard_verdict' ? one.verdict : []));
  const noted = result!.changes.flatMap(({ verdict }) => verdict ?? []);
  expect(noted).toEqual(told);
  expect(seen.flatMap((one) => (one.type === 'guard_verdict' ? one.verdict : []))).toEqual(told);
  return { told, result: result!, events };
}

describe('verdicts are data', () => {
  it.each<[GuardPoint, Script[], string]>([
    ['input', ['hi'], 'my SECRET'],
    ['output', ['my SECRET'], 'hi'],
    ['final', ['my SECRET'], 'hi'],
    [
      'thinking',
      [
        [
          { type: 'thinking', text: 'my SECRET' },
          { type: 'text', text: 'hi' },
        ],
      ],
      'hi',
    ],
  ])('a span at %s has a verdict with its place, kind and severity', async (point, script, input) => {
    const { told } = await verdictsOf(script, input, guarding({ on: [point], find }));
    expect(told).toEqual([
      { guard: 'watch', point, action: 'redact', kind: 'secret', severity: 'low', start: 3, end: 9 },
    ]);
  });

  it('places in arguments count in all their texts joined by line breaks, as a judge reads them', async () => {
    let text = '';
    const judge: Guard['judge'] = (subject) => {
      text = subject.text;
    };
    const args = { a: ['x', { SECRET: 12 }], b: 'a PIN' };
    const script = [toolCalls({ name: 'act', args }), 'done'];
    const { told } = await verdictsOf(
      script,
      'hi',
      guarding({ on: ['tool-args'], judge }, 'reads'),
      guarding({ on: ['tool-args'], find }),
    );
    expect(told.map(({ start, end }) => text.slice(start, end))).toEqual(['SECRET', 'PIN']);
  });

  it('results and their details have verdicts', async () => {
    const { told } = await verdictsOf(
      [toolCalls({ name: 'act', args: {} }), 'done'],
      'hi',
      guarding({ on: ['tool-result'], find }),
    );
    expect(told).toMatchObject([
      { point: 'tool-result', kind: 'secret', start: 4, end: 10 },
      { point: 'tool-result', kind: 'pin' },
    ]);
  });

  it.each([1, 7, 1000])('places on a stream are those in the whole text, in pieces of %i', async (size) => {
    const said = `${'word '.repeat(60)}SECRET ${'more '.repeat(60)}PIN and ${'rest '.repeat(40)}SECRET`;
    const pieces = said.match(new RegExp(`.{1,${size}}`, 'g'))!;
    const { told } = await verdictsOf(
      [chunks(...pieces)],
      'hi',
      guarding({ on: ['output'], find, hold: window(8), action: 'warn' }),
    );
    expect(told.map(({ start, end }) => said.slice(start, end))).toEqual(['SECRET', 'PIN', 'SECRET']);
    expect(told.every(({ action }) => action === 'warn')).toBe(true);
  });

  it.each<[Guard['action'], GuardVerdict['action']]>([
    ['redact', 'redact'],
    ['warn', 'warn'],
    ['block', 'block'],
    ['stop', 'stop'],
    ['feedback', 'feedback'],
  ])('%s is reported as %s, with all its spans', async (action, expected) => {
    const { told } = await verdictsOf(['SECRET PIN', 'ok'], 'hi', guarding({ on: ['output'], find, action }));
    expect(told.map(({ action, kind }) => [action, kind])).toEqual([
      [expected, 'secret'],
      [expected, 'pin'],
    ]);
  });

  it.each<[Verdict, GuardVerdict['action'] | undefined]>([
    [{ type: 'deny', kind: 'topic', severity: 'critical' }, 'block'],
    [{ type: 'rewrite', text: 'fine', kind: 'topic', severity: 'critical' }, 'rewrite'],
    [{ type: 'allow' }, undefined],
  ])("a judge's verdict is reported: %o", async (verdict, action) => {
    const { told } = await verdictsOf(['hi'], 'hi', guarding({ on: ['output'], judge: () => verdict }));
    const expected = { guard: 'watch', point: 'output', action, kind: 'topic', severity: 'critical' };
    expect(told).toEqual(action ? [expected] : []);
  });

  it("a judge's question is reported", async () => {
    const ask: Guard = { on: ['tool-args'], judge: () => ({ type: 'ask', request: {}, kind: 'risky' }) };
    const { told } = await verdictsOf([toolCalls({ name: 'act', args: {} })], 'hi', guarding(ask));
    expect(told).toEqual([{ guard: 'watch', point: 'tool-args', action: 'ask', kind: 'risky' }]);
  });

  it('an attempt that was abandoned has no verdict', async () => {
    const replaces = defineMiddleware({
      name: 'replaces',
      async wrapModel(_, next) {
        await next();
        return assistantMessage('a PIN');
      },
    });
    for (const hold of ['full' as const, window(8)]) {
      const guard = guarding({ on: ['output'], find, hold });
      const { told } = await verdictsOf([chunks('SECRET and then some more of it')], 'hi', replaces, guard);
      expect(told.map(({ kind }) => kind)).toEqual(['pin']);
    }
  });

  it('no verdict holds what was judged, whatever the action', async () => {
    for (const action of ['redact', 'warn', 'block', 'stop', 'feedback'] as const) {
      const { told } = await verdictsOf(['SECRET', 'ok'], 'hi', guarding({ on: ['output'], find, action }));
      expect(JSON.stringify(told)).not.toContain('SECRET');
    }
  });

  it.each<[string, Partial<Span>]>([
    ['a kind that is text', { kind: 'ann@x.org wrote' }],
    ['an empty kind', { kind: '' }],
    ['a long kind', { kind: 'x'.repeat(65) }],
    ['an unknown severity', { severity: 'huge' as never }],
  ])('%s means that the guard has failed', async (_, more) => {
    const bad = guarding({ on: ['output'], find: () => [{ start: 0, end: 1, ...more }] });
    const agent = new Agent({ model: scriptedModel(['hi']), middleware: [bad] });
    await expect(agent.run('hi')).rejects.toMatchObject({ code: 'GUARD_FAILED' });
  });
});
