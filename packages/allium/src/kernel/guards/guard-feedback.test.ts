import {
  Agent,
  type AgentEvent,
  assistantMessage,
  defineMiddleware,
  type Guard,
  isSyntheticMessage,
  type Message,
  type Middleware,
  type ModelResponse,
  memoryStore,
  textOf,
  tool,
  toolCallsOf,
} from 'allium';
import { fallback, retry } from 'allium/middleware';
import { chunks, collect, failWith, type Script, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const find = (given: string) =>
  [...given.matchAll(/SECRET/g)].map((m) => ({ start: m.index, end: m.index + 6, kind: 'secret' }));
const feedback = (more: Partial<Guard> = {}): Middleware =>
  defineMiddleware({ name: 'strict', guard: { on: ['output'], find, action: 'feedback', ...more } });

const done: unknown[] = [];
const act = tool({
  name: 'act',
  description: 'Acts.',
  input: z.any(),
  execute: (args) => void done.push(args),
});

function agentOf(script: readonly Script[], ...middleware: Middleware[]) {
  done.length = 0;
  const model = scriptedModel(script);
  const store = memoryStore();
  const agent = new Agent({ model, store, middleware, tools: [act] });
  return { model, store, agent, session: agent.session('s') };
}

const told = ({ content }: Message): string => textOf({ content });
const shownText = (events: readonly AgentEvent[]): string => {
  let shown = '';
  for (const event of events) {
    if (event.type === 'message_reset') shown = '';
    if (event.type === 'message_update' && event.delta.type === 'text') shown += event.delta.text;
  }
  return shown;
};
const BUSY = Object.assign(new Error('busy'), { status: 503 });

describe("action: 'feedback'", () => {
  it('discards the response, tells the model why and asks it again, in the same turn', async () => {
    const { agent, model, store } = agentOf(['It is SECRET.', 'It is nothing.'], feedback());
    const { events, result } = await collect(agent.session('s').stream('What is it?'));
    expect(result).toMatchObject({ status: 'done', text: 'It is nothing.', turns: 1 });
    expect(result!.messages.map(({ role }) => role)).toEqual(['user', 'user', 'assistant']);
    const said = result!.messages[1]!;
    expect(isSyntheticMessage(said)).toBe(true);
    expect(said).toMatchObject({ metadata: { source: 'strict' } });
    expect(told(said)).toContain('Refused by guard "strict" (secret).');
    // Both calls are paid for.
    expect(result!.usage.totalTokens).toBe(30);
    expect(model.requests[1]!.messages).toHaveLength(2);
    expect(JSON.stringify([events, result, await store.read('s', 1), model.requests])).not.toContain(
      'SECRET',
    );
    const tail = events.map((one) => `${one.type}${'role' in one ? ` ${one.role}` : ''}`);
    expect(tail.slice(tail.indexOf('turn_start'))).toEqual([
      'turn_start',
      'message_start assistant',
      'guard_verdict',
      'message_reset',
      'message_end',
      'message_start user',
      'message_end',
      'message_start assistant',
      'message_update',
      'message_end',
      'turn_end',
      'agent_end',
    ]);
    const ids = events.flatMap((one) => (one.type === 'message_start' ? one.messageId : []));
    expect(new Set(ids).size).toBe(ids.length);
    expect(events.find((one) => one.type === 'message_end' && one.discarded)).toBeDefined();
  });

  it.each([1, 4, 50])('holds on streams with a window, in pieces of %i', async (size) => {
    const said = 'Well, the word is SECRET, and that is all there is to say about it.';
    const pieces = said.match(new RegExp(`.{1,${size}}`, 'g'))!;
    for (const middleware of [
      [feedback({ hold: { chars: 8 } })],
      [defineMiddleware({ name: 'layer', wrapModel: (_, next) => next() }), feedback({ hold: { chars: 8 } })],
    ]) {
      const { agent } = agentOf([chunks(...pieces), 'Nothing.'], ...middleware);
      const { events, result } = await collect(agent.stream('hi'));
      expect(result!.text).toBe('Nothing.');
      expect(shownText(events)).toBe('Nothing.');
      expect(JSON.stringify(events)).not.toContain('SECRET');
    }
  });

  it('gives up after maxFeedback, and refuses as block would', async () => {
    for (const [maxFeedback, calls] of [
      [undefined, 3],
      [1, 2],
      [3, 4],
    ] as const) {
      const script = Array.from({ length: 9 }, () => 'SECRET');
      const { agent, model } = agentOf(script, feedback(maxFeedback ? { maxFeedback } : {}));
      const result = await agent.run('hi');
      expect(result).toMatchObject({
        status: 'stopped',
        stop: { reason: 'guardrail', by: 'strict', message: 'Refused by guard "strict" (secret).' },
        text: '',
      });
      expect(model.requests).toHaveLength(calls);
      expect(result.changes.map(({ verdict }) => verdict?.action)).toEqual([
        ...Array.from({ length: calls - 1 }, () => 'feedback'),
        'block',
      ]);
    }
  });

  it('starts counting again in the next turn', async () => {
    const call = toolCalls({ name: 'act', args: {} });
    const script = ['SECRET', 'SECRET', call, 'SECRET', 'SECRET', 'fine'];
    await expect(agentOf(script, feedback()).agent.run('hi')).resolves.toMatchObject({
      status: 'done',
      text: 'fine',
      turns: 2,
    });
  });

  it.each(['thinking', 'final', 'output'] as const)(
    'a judge at %s refuses with its own reason',
    async (point) => {
      const judge: Guard['judge'] = ({ text: said }) =>
        said.includes('SECRET') ? { type: 'deny', reason: 'Do not name it.' } : undefined;
      const first =
        point === 'thinking'
          ? [
              { type: 'thinking' as const, text: 'SECRET' },
              { type: 'text' as const, text: 'hm' },
            ]
          : 'SECRET';
      const guard = defineMiddleware({ name: 'strict', guard: { on: [point], judge, action: 'feedback' } });
      const { agent, model } = agentOf([first, 'fine'], guard);
      await expect(agent.run('hi')).resolves.toMatchObject({ status: 'done', text: 'fine' });
      expect(told(model.requests[1]!.messages.at(-1)!)).toContain('Do not name it.');
    },
  );

  it('at tool-args: no call of the discarded answer runs, and the last refusal is read by the model', async () => {
    const bad = toolCalls({ name: 'act', args: { deep: [{ SECRET: 1 }] } });
    const good = toolCalls({ name: 'act', args: { fine: true } });
    const guard = feedback({ on: ['tool-args'], maxFeedback: 1 });
    const { agent } = agentOf([bad, good, 'done'], guard);
    await expect(agent.run('hi')).resolves.toMatchObject({ status: 'done', text: 'done' });
    expect(done).toEqual([{ fine: true }]);

    const again = agentOf([bad, bad, 'sorry'], guard);
    const result = await again.agent.run('hi');
    expect(result).toMatchObject({ status: 'done', text: 'sorry' });
    expect(done).toEqual([]);
    const [called] = result.messages.filter((one) => one.role === 'assistant' && toolCallsOf(one).length > 0);
    expect(JSON.stringify(called)).not.toContain('SECRET');
    expect(told(result.messages.find(({ role }) => role === 'tool')!)).toContain('Refused by guard');
  });

  it.each(['outside', 'inside'])('with retry and fallback %s', async (where) => {
    const other = scriptedModel(['SECRET', 'fine']);
    const layers = [retry({ attempts: 2, minDelayMs: 1 }), fallback({ models: [other] })];
    const middleware = where === 'outside' ? [...layers, feedback()] : [feedback(), ...layers.reverse()];
    const script = [failWith(BUSY, 'Good '), failWith(BUSY), failWith(BUSY), failWith(BUSY), failWith(BUSY)];
    const { agent } = agentOf(script, ...middleware);
    const { events, result } = await collect(agent.stream('hi'));
    expect(result).toMatchObject({ status: 'done', text: 'fine' });
    expect(shownText(events)).toBe('fine');
    expect(other.requests).toHaveLength(2);
  });

  it('a layer that swallows the signal changes nothing', async () => {
    const swallows = defineMiddleware({
      name: 'swallows',
      sink: true,
      async wrapModel(_, next) {
        try {
          return await next();
        } catch {
          return assistantMessage('Anything.');
        }
      },
    });
    const { agent, model } = agentOf(['SECRET', 'fine'], swallows, feedback());
    await expect(agent.run('hi')).resolves.toMatchObject({ status: 'done', text: 'fine' });
    expect(model.requests).toHaveLength(2);
  });

  it.each(['outside', 'inside'])('an answer from a cache %s is judged like a live one', async (where) => {
    const kept = new Map<string, ModelResponse>();
    const cache = defineMiddleware({
      name: 'cache',
      async wrapModel(ctx, next) {
        const key = JSON.stringify(ctx.messages.map(told));
        const found = kept.get(key) ?? (await next());
        kept.set(key, found);
        return found;
      },
    });
    const list = where === 'outside' ? [cache, feedback()] : [feedback(), cache];
    const { agent, model } = agentOf(['SECRET', 'fine'], ...list);
    for (let i = 0; i < 2; i++) {
      const { events, result } = await collect(agent.stream('hi'));
      expect(result).toMatchObject({ status: 'done', text: 'fine' });
      expect(shownText(events)).toBe('fine');
    }
    expect(model.requests).toHaveLength(2);
  });

  it('goes on counting after a crash', async () => {
    const store = memoryStore();
    const journal = store.append.bind(store);
    let left = 2;
    const model = scriptedModel(['SECRET', 'SECRET', 'SECRET', 'SECRET']);
    const agent = new Agent({ model, store, middleware: [feedback()] });
    // The process dies once the model was told the first time.
    store.append = (id, seq, entries) => {
      if (--left < 0) throw new Error('gone');
      return journal(id, seq, entries);
    };
    await expect(agent.session('s').run('hi')).rejects.toThrow();
    store.append = journal;
    const before = (await store.read('s', 1)).filter((entry) => entry.type === 'message' && entry.feedback);
    expect(before).toHaveLength(1);
    const resumed = await new Agent({ model, store, middleware: [feedback()] }).session('s').resume();
    expect(resumed).toMatchObject({ status: 'stopped', stop: { reason: 'guardrail' } });
    const all = (await store.read('s', 1)).filter((entry) => entry.type === 'message' && entry.feedback);
    expect(all).toHaveLength(2);
    const ids = resumed.messages.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('a model call of a middleware is refused at once', async () => {
    const side = scriptedModel(['SECRET', 'fine']);
    const asks = defineMiddleware({
      name: 'asks',
      async beforeModel(ctx) {
        await ctx.generate(side, { messages: 'well?' });
      },
    });
    const { agent } = agentOf(['hi'], asks, feedback());
    await expect(agent.run('hi')).resolves.toMatchObject({ stop: { reason: 'guardrail', by: 'strict' } });
    expect(side.requests).toHaveLength(1);
  });

  it('ends at a limit instead of asking again', async () => {
    const { agent, model } = agentOf(
      [text('SECRET', { inputTokens: 60, outputTokens: 60 }), 'fine'],
      feedback(),
    );
    await expect(agent.run('hi', { limits: { tokens: 100 } })).resolves.toMatchObject({
      stop: { reason: 'max_tokens' },
    });
    expect(model.requests).toHaveLength(1);
  });

  it('feedback that the guards of the input refuse is not sent: the answer is refused', async () => {
    const judge: Guard['judge'] = ({ text: said }) =>
      said.includes('strict') ? { type: 'deny' } : undefined;
    const shy = defineMiddleware({ name: 'shy', guard: { on: ['input'], judge } });
    await expect(agentOf(['SECRET'], shy, feedback()).agent.run('hi')).resolves.toMatchObject({
      stop: { reason: 'guardrail', by: 'strict' },
    });
  });

  it.each(['input', 'request', 'tool-result'] as const)('is not possible at %s', (point) => {
    expect(() => agentOf([], feedback({ on: ['output', point] }))).toThrow(
      `'feedback' asks the model again, so it is for what the model answered (output, thinking, tool-args, final), not for ${point}`,
    );
  });

  it.each([[0], [1.5], ['2']])('maxFeedback is an integer ≥ 1, not %s', (maxFeedback) => {
    expect(() => agentOf([], feedback({ maxFeedback: maxFeedback as number }))).toThrow('maxFeedback');
    expect(() => agentOf([], feedback({ action: 'block', maxFeedback: 2 }))).toThrow("action: 'feedback'");
  });
});
