/** What guards take out of an answer of a human is in no journal, whichever way the answer came. */
import {
  Agent,
  type AgentOptions,
  type Decision,
  type Middleware,
  memoryStore,
  type PendingRequest,
  type Session,
  type Store,
  textOf,
  tool,
} from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { storeWith } from '../../../../../test/run-checks.js';

const SECRET = 'sk-123';

/** Takes the secret out of everything it is asked about, and notes what it was shown. */
function redactor(shown: string[] = []): Middleware {
  const find = (given: string) => {
    const start = given.indexOf(SECRET);
    if (start >= 0) shown.push(given);
    return start < 0 ? [] : [{ start, end: start + SECRET.length }];
  };
  return { name: 'redactor', guard: { on: ['input', 'tool-args'], hold: 'full', find } };
}

const asksFirst: Middleware = {
  name: 'asks-first',
  beforeToolCall: ({ toolCall }) => (toolCall.name === 'mail' ? { ask: { title: 'May it?' } } : undefined),
};

function office({ store = memoryStore(), ...more }: { store?: Store } & Partial<AgentOptions> = {}) {
  const sent: string[] = [];
  const shown: string[] = [];
  const mail = tool({
    name: 'mail',
    description: '',
    input: z.object({ body: z.string() }),
    execute: ({ body }) => {
      sent.push(body);
      return `sent ${body}`;
    },
  });
  const asks = tool({
    name: 'asks',
    description: '',
    input: z.object({}),
    execute: async (_, ctx) => JSON.stringify(await ctx.suspend({ title: 'What now?' })),
  });
  const agent = ({ middleware = [], ...own }: Partial<AgentOptions> & { middleware?: Middleware[] } = {}) =>
    new Agent({
      model: scriptedModel([text('end')]),
      tools: [mail, asks],
      store,
      middleware: [redactor(shown), asksFirst, ...middleware],
      ...more,
      ...own,
    });
  const asking = (name: string) =>
    agent({ model: scriptedModel([toolCalls({ name, args: { body: 'hello' } }), text('end')]) }).session('s');
  const journal = async (id = 's') => JSON.stringify(await store.read(id, 1));
  return { store, sent, shown, agent, asking, journal };
}

const answers: [Decision, string, string][] = [
  [
    { type: 'respond', text: `Use ${SECRET}.` },
    'Use [redacted].',
    '{"type":"respond","text":"Use [redacted]."}',
  ],
  [
    { type: 'reject', reason: `Not ${SECRET}.` },
    'Not [redacted].',
    '{"type":"reject","reason":"Not [redacted]."}',
  ],
  [
    { type: 'edit', args: { body: `It is ${SECRET}.` } },
    'sent It is [redacted].',
    '{"type":"edit","args":{"body":"It is [redacted]."}}',
  ],
];
const ways: [string, (session: Session, request: PendingRequest, decision: Decision) => Promise<void>][] = [
  [
    'session.answer()',
    async (session, request, decision) => {
      await session.answer(request.id, decision);
      await session.resume();
    },
  ],
  [
    'resume({ answers })',
    async (session, request, decision) =>
      void (await session.resume({ answers: { [request.id]: decision } })),
  ],
  ['onRequest', async (session, _, decision) => void (await session.resume({ onRequest: () => decision }))],
];

describe.each(ways)('an answer through %s', (_, give) => {
  describe.each(answers)('%j', (decision, asked, told) => {
    it.each([
      ['mail', asked],
      ['asks', told],
    ])(
      'to a question about %s is journaled once, as guards leave it, and what they remove is shown to them once',
      async (name, result) => {
        const { asking, agent, journal, shown } = office();
        const [request] = (await asking(name).run('go')).pending;
        const session = agent().session('s');
        await give(session, request!, decision);
        expect(textOf((await session.messages())[2]!)).toBe(result);
        expect(await journal()).not.toContain(SECRET);
        expect((await journal()).match(/"type":"answer"/g)).toHaveLength(1);
        expect(shown).toHaveLength(1);
      },
    );
  });
});

describe('an answer that guards judge', () => {
  const decision: Decision = { type: 'respond', text: `Use ${SECRET}.` };

  it('is not lost when the process dies before what is left of it is written', async () => {
    const { store, asking, agent, journal } = office();
    const [request] = (await asking('mail').run('go')).pending;
    await agent().session('s').answer(request!.id, decision);
    const append: Store['append'] = (id, seq, entries) => {
      if (entries.some(({ type }) => type === 'answer')) throw new Error('power cut');
      return store.append(id, seq, entries);
    };
    const dying = agent({ store: storeWith(store, { append }) }).session('s');
    await expect(dying.resume()).rejects.toThrow('power cut');
    const { messages } = await agent().session('s').resume();
    expect(textOf(messages[2]!)).toBe('Use [redacted].');
    expect(await journal()).not.toContain(SECRET);
  });

  it('is kept when a run layer fails before the run goes on', async () => {
    const { asking, agent, journal } = office();
    const [request] = (await asking('mail').run('go')).pending;
    const down: Middleware = { name: 'down', beforeRun: () => Promise.reject(new Error('no server')) };
    const failing = agent({ middleware: [down] }).session('s');
    await expect(failing.resume({ answers: { [request!.id]: decision } })).rejects.toThrow('no server');
    expect(await journal()).not.toContain(SECRET);
    const { messages } = await agent().session('s').resume();
    expect(textOf(messages[2]!)).toBe('Use [redacted].');
    expect(await journal()).not.toContain(SECRET);
  });

  it('wakes the run when it comes while the run goes to wait for it', async () => {
    const { agent, journal } = office();
    const early: Middleware = {
      name: 'early',
      afterRun: async () => {
        const session = agent().session('s');
        const open = await session.pending();
        for (const { id } of open) await session.answer(id, decision);
        if (open.length > 0) await session.followUp('and then?');
      },
    };
    const model = scriptedModel([toolCalls({ name: 'mail', args: { body: 'hello' } }), 'once', 'twice']);
    const { status, pending, messages } = await agent({ model, middleware: [early] })
      .session('s')
      .run('go');
    expect({ status, pending }).toEqual({ status: 'done', pending: [] });
    expect(messages.slice(2).map(textOf)).toEqual(['Use [redacted].', 'once', 'and then?', 'twice']);
    expect(await journal()).not.toContain(SECRET);
  });

  it('is judged again when a hook failed to judge it', async () => {
    const { asking, agent, shown } = office();
    const [request] = (await asking('mail').run('go')).pending;
    const broken: Middleware = {
      name: 'broken',
      acceptMessage: () => Promise.reject(new Error('no server')),
    };
    await agent().session('s').answer(request!.id, decision);
    await expect(
      agent({ middleware: [broken] })
        .session('s')
        .resume(),
    ).rejects.toThrow('no server');
    const { messages } = await agent().session('s').resume();
    expect(textOf(messages[2]!)).toBe('Use [redacted].');
    expect(shown).toHaveLength(2);
  });

  it('is refused with the reason of a guard, arguments included', async () => {
    const deny: Middleware = {
      name: 'deny',
      guard: {
        on: ['tool-args'],
        judge: ({ text: said }) =>
          said?.includes(SECRET) ? { type: 'deny', reason: 'Too much.' } : undefined,
      },
    };
    const { asking, agent, journal, sent } = office({ middleware: [asksFirst, deny] });
    const [request] = (await asking('mail').run('go')).pending;
    await agent()
      .session('s')
      .answer(request!.id, { type: 'edit', args: { body: SECRET } });
    const { messages } = await agent().session('s').resume();
    expect(textOf(messages[2]!)).toBe('Too much.');
    expect(sent).toEqual([]);
    expect(await journal()).not.toContain(SECRET);
  });

  it.each(ways)(
    'to a sub-agent passes the guards of the session that was asked, too: %s',
    async (_, give) => {
      const { store, agent, journal } = office({ middleware: [asksFirst] });
      const boss = (answer: Parameters<typeof scriptedModel>[0][0]) => {
        const model = scriptedModel([toolCalls({ name: 'mail', args: { body: 'hello' } })]);
        const clerk = agent({ model }).asTool({ name: 'clerk', description: '' });
        const tools = [clerk];
        return new Agent({ model: scriptedModel([answer]), tools, store, middleware: [redactor()] }).session(
          's',
        );
      };
      const first = boss(toolCalls({ name: 'clerk', args: { prompt: 'Write.' } }));
      const [request] = (await first.run('go')).pending;
      await give(boss('end'), request!, decision);
      const ids = (await store.list()).sessions.map(({ sessionId }) => sessionId);
      expect(ids).toHaveLength(2);
      for (const id of ids) {
        expect(await journal(id)).not.toContain(SECRET);
        expect(await journal(id)).toContain('Use [redacted].');
      }
    },
  );
});
