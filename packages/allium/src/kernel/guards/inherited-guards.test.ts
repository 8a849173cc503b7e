/** Sub-agents are under the guards of whoever calls them, unless said otherwise. */
import {
  Agent,
  type AgentOptions,
  type AsToolOptions,
  defineMiddleware,
  defineState,
  type Middleware,
  memoryStore,
  type RunResult,
  textOf,
  tool,
} from 'allium';
import { subagents } from 'allium/middleware';
import { collect, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const MAIL = 'ann@x.org';
const mail = (name = 'mail', replacement = '[mail]'): Middleware =>
  defineMiddleware({
    name,
    guard: {
      on: ['input', 'request', 'output', 'tool-args', 'tool-result'],
      replacement,
      find: (given) => [...given.matchAll(/ann@x\.org/g)].map((m) => ({ start: m.index, end: m.index + 9 })),
    },
  });

const fetched: string[] = [];
const fetch = tool({
  name: 'fetch',
  description: '',
  input: z.object({ to: z.string() }),
  execute: ({ to }) => {
    fetched.push(to);
    return `From ${MAIL}`;
  },
});

/** A clerk that leaks at every point, and what of it is stored under its caller. */
async function work(
  how: Partial<AsToolOptions> & { middleware?: 'subagents' },
  own: readonly Middleware[] = [],
  caller: Partial<AgentOptions> = {},
) {
  fetched.length = 0;
  const { middleware: kind, ...options } = how;
  const model = scriptedModel([toolCalls({ name: 'fetch', args: { to: MAIL } }), text(`It is ${MAIL}.`)]);
  const store = memoryStore();
  const clerk = new Agent({ name: 'clerk', model, tools: [fetch], middleware: own });
  const { inheritGuards } = options;
  const delegate =
    kind === 'subagents'
      ? {
          middleware: [
            mail(),
            subagents({
              defaultModel: model,
              sharedTools: [fetch],
              inheritMiddleware: own,
              ...(inheritGuards !== undefined && { inheritGuards }),
            }),
          ],
        }
      : {
          middleware: [mail()],
          tools: [clerk.asTool({ name: 'ask', description: '', ...options, prompt: () => `Ask ${MAIL}` })],
        };
  const call =
    kind === 'subagents'
      ? toolCalls({ name: 'subagent', args: { name: 'clerk', task: 't', prompt: 'p' } })
      : toolCalls({ name: 'ask', args: { prompt: 'p' } });
  const boss = new Agent({ model: scriptedModel([call, text('done')]), store, ...delegate, ...caller });
  const { result, events } = await collect(boss.session('s').stream('go'));
  const { sessions } = store.list({});
  const journals = await Promise.all(sessions.map(({ sessionId }) => store.read(sessionId, 1)));
  return { boss, model, result: result as RunResult, events, stored: JSON.stringify(journals) };
}

describe('the guards of the caller', () => {
  it.each([
    ['an agent as a tool', {}],
    ['the sub-agents of the middleware', { middleware: 'subagents' as const }],
  ])('judge in %s', async (_, how) => {
    const { result, stored, events, model } = await work(how);
    expect(result).toMatchObject({ status: 'done' });
    expect(stored).not.toContain(MAIL);
    expect(JSON.stringify(events)).not.toContain(MAIL);
    expect(JSON.stringify(model.requests)).not.toContain(MAIL);
    expect(fetched).toEqual(['[mail]']);
  });

  it('judge in a run with a parent, and further in', async () => {
    const inner = new Agent({ model: scriptedModel([text(`It is ${MAIL}.`)]) });
    const middle = new Agent({
      model: scriptedModel([toolCalls({ name: 'ask', args: { prompt: 'p' } }), text(`I say ${MAIL}`)]),
      tools: [inner.asTool({ name: 'ask', description: '' })],
    });
    const said: string[] = [];
    const go = tool({
      name: 'go',
      description: '',
      input: z.object({}),
      execute: async (_, ctx) => {
        const { messages } = await middle.run('hi', { parent: ctx });
        said.push(...messages.map(textOf));
        const free = await new Agent({ model: scriptedModel([text(MAIL)]) }).run('hi', {
          parent: ctx,
          inheritGuards: false,
        });
        said.push(free.text);
        return 'ok';
      },
    });
    const boss = new Agent({
      model: scriptedModel([toolCalls({ name: 'go', args: {} }), text('done')]),
      tools: [go],
      middleware: [mail()],
    });
    await boss.run('go');
    expect(said).toEqual(['hi', '', 'It is [mail].', 'I say [mail]', MAIL]);
  });

  it('come after those of the sub-agent, and a guard that both have judges once', async () => {
    const { stored } = await work({}, [mail('mail', '[own]')]);
    expect(stored).toContain('It is [own].');
    expect(stored).not.toContain(MAIL);
    const shared = mail();
    const { model } = await work({}, [shared], { middleware: [shared] });
    expect(JSON.stringify(model.requests)).toContain('Ask [mail]');
  });

  it('keep their own cells there', async () => {
    const counting = (): Middleware => {
      const count = defineState<number>({ name: 'count', scope: 'session', initial: 0 });
      return {
        name: 'counting',
        state: [count],
        guard: {
          on: ['input'],
          judge: (_, { context }) => {
            context.state.set(count, context.state.get(count) + 1);
            return undefined;
          },
        },
      };
    };
    const { result } = await work({}, [counting()], { middleware: [counting()] });
    expect(result).toMatchObject({ status: 'done' });
  });

  it('are left out if `asTool` says so, and explain() warns of it', async () => {
    for (const how of [
      { inheritGuards: false },
      { middleware: 'subagents' as const, inheritGuards: false },
    ]) {
      const { boss, stored } = await work(how);
      expect(fetched).toEqual([MAIL]);
      expect(stored).toContain(MAIL);
      expect(boss.explain().hazards).toMatchObject([{ id: 'unguarded-subagent', between: ['mail'] }]);
      expect(String(boss.explain())).toContain('runs agents under no guards of this one');
    }
    const { boss } = await work({});
    expect(boss.explain()).toMatchObject({ subagents: [{ tool: 'ask', guards: ['mail'] }], hazards: [] });
    expect(String(boss.explain())).toContain('ask runs agents under mail');
  });

  it('are there again when the sub-agent is resumed', async () => {
    const store = memoryStore();
    const pay = tool({
      name: 'pay',
      description: '',
      input: z.object({}),
      execute: async (_, ctx) => {
        await ctx.suspend({ title: 'Pay?' });
        return `Paid ${MAIL}`;
      },
    });
    const agent = (...steps: Parameters<typeof scriptedModel>[0][number][]) => {
      const clerk = new Agent({ model: scriptedModel(steps.slice(1)), tools: [pay] });
      return new Agent({
        model: scriptedModel(steps.slice(0, 1)),
        store,
        middleware: [mail()],
        tools: [clerk.asTool({ name: 'ask', description: '' })],
      });
    };
    const first = agent(
      toolCalls({ name: 'ask', args: { prompt: 'p' } }),
      toolCalls({ name: 'pay', args: {} }),
    );
    const { pending } = await first.session('s').run('go');
    const second = agent(text('done'), text(`Paid ${MAIL}.`)).session('s');
    const answers = { [pending[0]!.id]: { type: 'approve' as const } };
    expect(await second.resume({ answers })).toMatchObject({ status: 'done' });
    const { sessions } = store.list({});
    const all = await Promise.all(sessions.map(({ sessionId }) => store.read(sessionId, 1)));
    expect(JSON.stringify(all)).not.toContain(MAIL);
    expect(JSON.stringify(all)).toContain('Paid [mail]');
  });

  it('takes nothing but true or false', () => {
    const agent = new Agent({ model: scriptedModel([]) });
    const wrong = { name: 'a', description: '', inheritGuards: 'no' as never };
    expect(() => agent.asTool(wrong)).toThrow('inheritGuards');
    expect(() => subagents({ inheritGuards: 1 as never })).toThrow('inheritGuards');
  });
});
