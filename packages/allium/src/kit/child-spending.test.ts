/** What a caller knows of what its sub-agents have used, wherever the process died. */
import { Agent, memoryStore, type Store, tool } from 'allium';
import { approval } from 'allium/middleware/approval';
import { type Script, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

/** Answers by how many answers there are already, whichever process asks. */
const byTurn = (...answers: Script[]) =>
  scriptedModel(
    [
      (request, call) => {
        const answer = answers[request.messages.filter(({ role }) => role === 'assistant').length]!;
        return typeof answer === 'function' ? answer(request, call) : answer;
      },
    ],
    { repeat: true, price: { input: 1, output: 10 } },
  );

/** Each call of a model costs this: 10 tokens in, 5 out. */
const CALL = 15;

interface Given {
  readonly asks?: boolean;
}

/** A boss with two clerks at once, one of whom has a clerk of its own. Nine calls of models in all. */
function boss(store: Store, { asks = false }: Given = {}) {
  const look = tool({
    name: 'look',
    description: 'Looks.',
    input: z.object({}),
    idempotent: true,
    execute: () => 'seen',
  });
  const clerk = (name: string, answers: Script[], tools: Parameters<typeof tool>[0][]) =>
    new Agent({
      name,
      model: byTurn(...answers),
      tools: tools as never,
      middleware: asks ? [approval({ policy: { look: 'ask', junior: 'allow' } })] : [],
    });
  const junior = clerk('junior', [toolCalls({ name: 'look' }), 'looked'], [look as never]);
  const hands = junior.asTool({ name: 'junior', description: 'Helps.' });
  const senior = clerk(
    'senior',
    [toolCalls({ name: 'junior', args: { prompt: 'Look.' } }), 'told'],
    [hands as never],
  );
  const other = clerk(
    'other',
    [toolCalls({ name: 'look' }), toolCalls({ name: 'look' }), 'done'],
    [look as never],
  );
  return new Agent({
    model: byTurn(
      toolCalls({ name: 'senior', args: { prompt: 'a' } }, { name: 'other', args: { prompt: 'b' } }),
      text('end'),
    ),
    tools: [senior, other].map((agent) => agent.asTool({ name: agent.name, description: 'Works.' })),
    store,
  }).session('s');
}

/** A store whose process dies at the nth append. */
function dying(store: Store, n: number): Store {
  let appends = 0;
  return new Proxy(store, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      if (name !== 'append') return value.bind(target);
      return (...args: unknown[]) => {
        if (++appends >= n) throw new Error('killed');
        return value.apply(target, args);
      };
    },
  });
}

async function finish(store: Store, given: Given = {}) {
  for (let tries = 0; ; tries++) {
    const session = boss(store, given);
    const pending = await session.pending();
    const answers = Object.fromEntries(pending.map(({ id }) => [id, { type: 'approve' as const }]));
    const result = await session.resume({ answers });
    if (result.status !== 'suspended' || tries === 5) return result;
  }
}

describe('after a crash, a caller knows what its sub-agents had used', () => {
  it.each([{}, { asks: true }])('wherever it was: %j', async (given) => {
    const whole = memoryStore();
    let result = await boss(whole, given).run('go');
    if (result.status === 'suspended') result = await finish(whole, given);
    expect(result.usage.totalTokens).toBe(9 * CALL);
    let crashes = 0;
    for (let n = 2; ; n++) {
      const store = memoryStore();
      const first = await boss(dying(store, n), given)
        .run('go')
        .catch(() => undefined);
      if (first) break;
      crashes++;
      const { usage, costUsd } = await finish(store, given);
      // What was used for an answer that was never written is used again, and nobody knows of the first.
      expect([n, usage.totalTokens]).toEqual([n, 9 * CALL]);
      expect(costUsd).toBeCloseTo(result.costUsd!, 10);
    }
    expect(crashes).toBeGreaterThan(3);
  });

  it('so limits hold', async () => {
    const store = memoryStore();
    await expect(boss(dying(store, 12)).run('go')).rejects.toMatchObject({ code: 'STORE_FAILED' });
    const result = await boss(store).resume({ limits: { tokens: 4 * CALL } });
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'max_tokens' } });
    expect(result.usage.totalTokens).toBeLessThan(9 * CALL);
  });
});
