import {
  Agent,
  type Decision,
  type Message,
  type Middleware,
  memoryStore,
  type Store,
  textOf,
  tool,
} from 'allium';
import { approval } from 'allium/middleware/approval';
import { contextEditing } from 'allium/middleware/context-editing';
import { historyTruncator } from 'allium/middleware/history-truncator';
import { subagents } from 'allium/middleware/subagents';
import { type ScriptedModel, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { breakingStore, watch, watched } from '../../../../../test/run-checks.js';

const NOTE =
  'Note: a person changed the arguments of this call on purpose. What follows is the result for the changed arguments.';
const input = z.object({ amount: z.number(), currency: z.string().default('EUR') });
const pay = tool({ name: 'pay', description: '', input, execute: ({ amount }) => `Paid ${amount}.` });
const call = (amount: number, id = 'c1') => toolCalls({ name: 'pay', args: { amount }, id });
const edit: Decision = { type: 'edit', args: { amount: 100 } };
const resultsIn = (messages: readonly Message[] = []) =>
  messages.filter(({ role }) => role === 'tool').map(textOf);
const sent = (model: ScriptedModel, at = -1) => resultsIn(model.requests.at(at)?.messages);

function world(middleware: readonly Middleware[] = [approval()], store: Store = memoryStore()) {
  return (...script: Parameters<typeof scriptedModel>[0]) => {
    const model = scriptedModel(script);
    return { model, session: new Agent({ model, tools: [pay], middleware, store }).session('s') };
  };
}

describe('a call whose arguments a person changed', () => {
  it('is noted in requests, the same in later turns, resumed runs and later runs, and nowhere else', async () => {
    const store = memoryStore();
    const open = world([approval()], store);
    const first = open(call(500));
    const { result } = await watched(first.session, 'go');
    const second = open(call(5, 'c2'));
    const resumed = await watch(second.session.resumeStream({ answers: { [result.pending[0]!.id]: edit } }));
    const third = open('Paid both.', 'Again.');
    const answers = { [resumed.result.pending[0]!.id]: { type: 'approve' } as const };
    const ended = await watch(third.session.resumeStream({ answers }));
    const later = await watched(third.session, 'And?');
    expect(sent(second.model)).toEqual([`${NOTE}\n\nPaid 100.`]);
    expect(sent(third.model, 0)).toEqual([`${NOTE}\n\nPaid 100.`, 'Paid 5.']);
    expect(sent(third.model, 1)).toEqual([`${NOTE}\n\nPaid 100.`, 'Paid 5.']);
    for (const told of [resumed.events, resumed.result, ended.result, later.events, later.result])
      expect(JSON.stringify(told)).not.toContain('Note:');
    expect(JSON.stringify(await third.session.messages())).not.toContain('Note:');
    expect(JSON.stringify(store.read('s', 1))).not.toContain('Note:');
    expect(resultsIn(await third.session.messages())).toEqual(['Paid 100.', 'Paid 5.']);
  });

  it.each<[string, Decision | undefined]>([
    ['approved', { type: 'approve' }],
    ['given the same arguments', { type: 'edit', args: { amount: 500 } }],
    ['given the arguments that were shown', { type: 'edit', args: { currency: 'EUR', amount: 500 } }],
    ['answered', { type: 'respond', text: 'Paid 500.' }],
  ])('is not one that was %s', async (_, answer) => {
    const { model, session } = world()(call(500), 'Done.');
    await session.run('go', { onRequest: () => answer });
    expect(sent(model)).toEqual(['Paid 500.']);
  });

  it('is not one whose tool asked in the middle of its work', async () => {
    const asks = tool({
      name: 'pay',
      description: '',
      input,
      execute: (_, ctx) => ctx.suspend({ title: 'How much?' }).then((answer) => JSON.stringify(answer)),
    });
    const model = scriptedModel([call(500), 'Done.']);
    await new Agent({ model, tools: [asks] }).run('go', { onRequest: () => edit });
    expect(sent(model)).toEqual([expect.stringMatching(/^\{.*"amount":100/)]);
  });

  it('is noted beside others of its batch, whoever asked and however the answer came', async () => {
    const asking: Middleware = { name: 'asking', beforeToolCall: () => ({ ask: { title: 'Sure?' } }) };
    const batch = toolCalls(
      { name: 'pay', args: { amount: 1 }, id: 'a' },
      { name: 'pay', args: { amount: 2 }, id: 'b' },
      { name: 'pay', args: { amount: 3 }, id: 'c' },
    );
    const onRequest = ({ callId }: { callId: string }): Decision =>
      callId === 'b' ? edit : callId === 'a' ? { type: 'approve' } : { type: 'reject', reason: 'No.' };
    const { model, session } = world([asking])(batch, 'Done.');
    await session.run('go', { onRequest });
    expect(sent(model)).toEqual(['Paid 1.', `${NOTE}\n\nPaid 100.`, 'No.']);
    const posted = world([asking])(call(5), 'Done.');
    const { pending } = await posted.session.run('go');
    await posted.session.answer(pending[0]!.id, edit);
    await posted.session.resume();
    expect(sent(posted.model)).toEqual([`${NOTE}\n\nPaid 100.`]);
  });

  it('is noted after a crash between the answer and any later step', async () => {
    for (let appends = 1; appends < 8; appends++) {
      const store = memoryStore();
      const { pending } = await world([approval()], store)(call(500)).session.run('go');
      const broken = world([approval()], breakingStore(store, appends).store);
      const answers = { [pending[0]!.id]: edit };
      await broken('Lost.')
        .session.resume({ answers })
        .catch(() => {});
      const { model, session } = world([approval()], store)('Done.', 'Later.');
      if ((await session.pending()).length > 0) await session.resume({ answers });
      else await session.resume().catch(() => {});
      await session.run('And?');
      expect(sent(model), `after ${appends} appends`).toEqual([
        expect.stringMatching(/^Note: .*\n\n(Paid 100|In doubt)/),
      ]);
    }
  });

  it('is noted when a session is opened from a snapshot, and in a fork', async () => {
    const open = world();
    const { session } = open(call(500), ...Array.from({ length: 300 }, () => 'Fine.'));
    await session.run('go', { onRequest: () => edit });
    for (let i = 0; i < 150; i++) await session.run('More.');
    const other = open('Done.', 'Forked.');
    await other.session.run('And?');
    expect(sent(other.model)).toEqual([`${NOTE}\n\nPaid 100.`]);
    const fork = await other.session.fork();
    await fork.run('And here?');
    expect(sent(other.model)).toEqual([`${NOTE}\n\nPaid 100.`]);
  });

  it('is noted in what rules, layers and caches of requests see', async () => {
    const seen: string[][] = [];
    const looking: Middleware = {
      name: 'looking',
      transformContext(messages) {
        seen.push(resultsIn(messages));
        return [...messages];
      },
      beforeModel: (ctx) => void seen.push(resultsIn(ctx.messages)),
    };
    const { model, session } = world([looking, approval(), historyTruncator({ maxMessages: 50 })])(
      call(500),
      'Done.',
    );
    await session.run('go', { onRequest: () => edit });
    expect(seen.slice(2)).toEqual([[`${NOTE}\n\nPaid 100.`], [`${NOTE}\n\nPaid 100.`]]);
    expect(sent(model)).toEqual([`${NOTE}\n\nPaid 100.`]);
  });

  it('is noted beside earlier ones, in the same message every time, so that guards judge it once', async () => {
    const judged: string[] = [];
    const guard: Middleware = {
      name: 'looks',
      guard: {
        on: ['request'],
        judge: ({ text }) => {
          judged.push(text);
          return { type: 'allow' };
        },
      },
    };
    const { model, session } = world([approval(), guard])(call(5), call(6, 'c2'), 'Done.');
    await session.run('go', { onRequest: () => edit });
    expect(sent(model)).toEqual([`${NOTE}\n\nPaid 100.`, `${NOTE}\n\nPaid 100.`]);
    expect(judged.filter((text) => text.startsWith('Note:'))).toHaveLength(2);
  });

  it('is noted if its result is cleared', async () => {
    const clearing = contextEditing({ clearToolResultsAfterTokens: 0, keep: 0, placeholder: '[cleared]' });
    const long = tool({ name: 'pay', description: '', input, execute: () => 'Paid. '.repeat(100) });
    const model = scriptedModel([call(500), 'Done.']);
    await new Agent({ model, tools: [long], middleware: [approval(), clearing] }).run('go', {
      onRequest: () => edit,
    });
    expect(sent(model)).toEqual([`${NOTE}\n\n[cleared]`]);
  });

  it('is not noted if guards refuse what the person wrote', async () => {
    const guard: Middleware = {
      name: 'small',
      guard: {
        on: ['tool-args'],
        judge: ({ text }) =>
          text.includes('100') ? { type: 'deny', reason: 'Too much.' } : { type: 'allow' },
      },
    };
    for (const middleware of [
      [guard, approval()],
      [approval(), guard],
    ]) {
      const { model, session } = world(middleware)(call(5), 'Done.');
      const { pending } = await session.run('go');
      await session.resume({ answers: { [pending[0]!.id]: edit } });
      expect(sent(model)).toEqual(['Too much.']);
    }
  });

  it('is not noted if a guard that came with a later resume refuses it', async () => {
    const strict: Middleware = {
      name: 'strict',
      guard: { on: ['tool-args'], judge: ({ text }) => (text.includes('100') ? deny : { type: 'allow' }) },
    };
    const deny = { type: 'deny', reason: 'Too much.' } as const;
    const results = [];
    for (let appends = 1; appends < 4; appends++) {
      const store = memoryStore();
      const { pending } = await world([approval()], store)(call(5)).session.run('go');
      const answers = { [pending[0]!.id]: edit };
      const broken = world([approval()], breakingStore(store, appends).store)('Lost.').session;
      await broken.resume({ answers }).catch(() => {});
      const { model, session } = world([strict, approval()], store)('Done.');
      await session.resume().catch(() => {});
      results.push(...sent(model));
    }
    expect(results).toContain('Too much.');
    expect(results.filter((said) => said.includes('Too much.') && said !== 'Too much.')).toEqual([]);
  });

  it('is noted for the sub-agent that made it, not for its caller', async () => {
    const child = scriptedModel([call(500), 'Child done.']);
    const parent = scriptedModel([
      toolCalls({
        name: 'subagent',
        args: { name: 'Bo', role: 'payer', task: 'pay', prompt: 'Pay.', subagent_type: 'payer' },
      }),
      'Done.',
    ]);
    const payer = {
      name: 'payer',
      description: 'Pays.',
      systemPrompt: 'Pay.',
      model: child,
      tools: [pay],
      middleware: [approval()],
    };
    const agent = new Agent({
      model: parent,
      middleware: [subagents({ agents: { payer }, defaultModel: child })],
    });
    const session = agent.session('s');
    const { pending } = await session.run('go');
    await session.resume({ answers: { [pending[0]!.id]: edit } });
    expect(sent(child)).toEqual([`${NOTE}\n\nPaid 100.`]);
    expect(JSON.stringify(parent.requests)).not.toContain('Note:');
  });

  it('has its note in the first text of the result, or before what is no text', async () => {
    const image = { type: 'image', data: 'aGk=', mimeType: 'image/png' } as const;
    const draw = tool({ name: 'draw', description: '', input: z.object({}).loose(), execute: () => [image] });
    const model = scriptedModel([toolCalls({ name: 'draw', args: { size: 1 } }), 'Done.']);
    const agent = new Agent({ model, tools: [draw], middleware: [approval()] });
    await agent.run('go', { onRequest: () => edit });
    expect(model.requests[1]!.messages.at(-1)!.content).toEqual([{ type: 'text', text: NOTE }, image]);
  });
});
