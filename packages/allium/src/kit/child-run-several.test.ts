/** A tool that asks more than one agent within one call. */
import {
  Agent,
  type Awaitable,
  defineMiddleware,
  type Message,
  memoryStore,
  type Store,
  type ToolContext,
  textOf,
  tool,
} from 'allium';
import { approval } from 'allium/middleware/approval';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const prompt = z.object({ prompt: z.string() });
const toolTexts = (messages: readonly Message[]) =>
  messages.filter(({ role }) => role === 'tool').map(textOf);
const asked = (name: string) => toolCalls({ name, args: { prompt: 'Who are you?' }, id: 'c' });
const named = (name: string) =>
  new Agent({ name, model: scriptedModel([`I am ${name}`], { repeat: true }) }).asTool({
    name,
    description: '',
  });

function panel(execute: (args: { prompt: string }, ctx: ToolContext) => Awaitable<string>) {
  return tool({ name: 'panel', description: 'Asks several agents.', input: prompt, execute });
}

const contentOf = (result: unknown) => (result as { content: readonly { text: string }[] }).content[0]!.text;

describe('two agents asked in one call', () => {
  const [a, b] = [named('a'), named('b')];

  it('each give their own answer, one after the other and side by side', async () => {
    const inTurn = panel(async (args, ctx) => {
      const first = contentOf(await a.execute(args, ctx));
      return `${first}, ${contentOf(await b.execute(args, ctx))}`;
    });
    const atOnce = panel(async (args, ctx) => {
      const both = await Promise.all([a.execute(args, ctx), b.execute(args, ctx)]);
      return both.map(contentOf).join(', ');
    });
    for (const one of [inTurn, atOnce]) {
      const store = memoryStore();
      const model = scriptedModel([asked('panel'), text('end')]);
      const { messages } = await new Agent({ model, tools: [one], store }).session('s').run('go');
      expect(toolTexts(messages)).toEqual(['I am a, I am b']);
      const ids = (await store.list()).sessions.map(({ sessionId }) => sessionId.split('.').at(-1));
      expect(ids.sort()).toEqual(['0', '0+2', 's']);
    }
  });

  it('one agent asked twice gets both questions', async () => {
    const model = scriptedModel(['one', 'two']);
    const child = new Agent({ name: 'child', model }).asTool({ name: 'child', description: '' });
    const twice = panel(async (_, ctx) => {
      const first = contentOf(await child.execute({ prompt: 'First?' }, ctx));
      return `${first}, ${contentOf(await child.execute({ prompt: 'Second?' }, ctx))}`;
    });
    const parent = new Agent({ model: scriptedModel([asked('panel'), text('end')]), tools: [twice] });
    expect(toolTexts((await parent.run('go')).messages)).toEqual(['one, two']);
    expect(model.requests.map(({ messages }) => messages.map(textOf))).toEqual([['First?'], ['Second?']]);
  });

  it('another attempt of the call finds both results', async () => {
    const models = ['a', 'b'].map((name) => scriptedModel([`I am ${name}`]));
    const [one, two] = models.map((model, i) =>
      new Agent({ model }).asTool({ name: `child${i}`, description: '' }),
    );
    let attempts = 0;
    const flaky = panel(async (args, ctx) => {
      const both = [contentOf(await one!.execute(args, ctx)), contentOf(await two!.execute(args, ctx))];
      attempts++;
      if (attempts === 1) throw new Error('Not yet.');
      return both.join(', ');
    });
    const again = defineMiddleware({
      name: 'again',
      wrapTool: (_, next) => Promise.resolve(next()).catch(() => next()),
    });
    const model = scriptedModel([asked('panel'), text('end')]);
    const parent = new Agent({ model, tools: [flaky], middleware: [again], store: memoryStore() });
    expect(toolTexts((await parent.session('s').run('go')).messages)).toEqual(['I am a, I am b']);
    expect(attempts).toBe(2);
    expect(models.map(({ requests }) => requests.length)).toEqual([1, 1]);
  });

  it('both may ask a human, and each goes on with its own answer in another process', async () => {
    const paid: string[] = [];
    const process = (store: Store) => {
      const clerks = ['left', 'right'].map((name) => {
        const pay = tool({
          name: 'pay',
          description: '',
          input: z.object({}),
          execute: () => {
            paid.push(name);
            return 'Paid.';
          },
        });
        const model = scriptedModel(
          [
            ({ messages }) =>
              messages.some(({ role }) => role === 'tool')
                ? text(`${name} has paid`)
                : toolCalls({ name: 'pay', args: {} }),
          ],
          { repeat: true },
        );
        const agent = new Agent({ name, model, tools: [pay], middleware: [approval()] });
        return agent.asTool({ name, description: '' });
      });
      const both = panel(async (args, ctx) => {
        const results = await Promise.all(clerks.map((clerk) => clerk.execute(args, ctx)));
        return results.map(contentOf).join(', ');
      });
      const model = scriptedModel(
        [({ messages }) => (messages.some(({ role }) => role === 'tool') ? text('end') : asked('panel'))],
        { repeat: true },
      );
      return new Agent({ model, tools: [both], store }).session('s');
    };
    const store = memoryStore();
    let result = await process(store).run('go');
    for (let i = 0; i < 2 && result.status === 'suspended'; i++) {
      const answers = Object.fromEntries(result.pending.map(({ id }) => [id, { type: 'approve' as const }]));
      result = await process(store).resume({ answers });
    }
    expect(result.status).toBe('done');
    expect(toolTexts(result.messages)).toEqual(['left has paid, right has paid']);
    expect(paid.sort()).toEqual(['left', 'right']);
  });

  it('one that still works when the other asks comes to its end, and its answer is found after the resume', async () => {
    let calls = 0;
    const slow = defineMiddleware({
      name: 'slow',
      wrapModel: async (_, next) => {
        calls++;
        // By then the other one has long asked its question.
        await new Promise((resolve) => setImmediate(resolve));
        return next();
      },
    });
    const pay = tool({ name: 'pay', description: '', input: z.object({}), execute: () => 'Paid.' });
    const asking = scriptedModel([toolCalls({ name: 'pay', args: {} }), text('paid')]);
    const children = [
      new Agent({ name: 'slow', model: scriptedModel(['slow is done']), middleware: [slow] }),
      new Agent({ name: 'asking', model: asking, tools: [pay], middleware: [approval()] }),
    ].map((agent) => agent.asTool({ name: agent.name, description: '' }));
    const both = panel(async (args, ctx) => {
      const results = await Promise.all(children.map((child) => child.execute(args, ctx)));
      return results.map(contentOf).join(', ');
    });
    const agent = new Agent({ model: scriptedModel([asked('panel'), 'end']), tools: [both] });
    const session = agent.session('s');
    const { pending } = await session.run('go');
    const result = await session.resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(toolTexts(result.messages)).toEqual(['slow is done, paid']);
    expect(calls).toBe(1);
  });
});
