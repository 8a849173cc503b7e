import { getEventListeners } from 'node:events';
import { Agent, type AgentEvent, type Store, tool, userMessage } from 'allium';
import { applyEvent, EMPTY_VIEW, type SentEvent, type View } from 'allium/http/client';
import { approval } from 'allium/middleware/approval';
import { retry } from 'allium/middleware/retry';
import { memoryStore } from 'allium/stores/memory';
import { chunks, failWith, fakeClock, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { storeWith } from '../../../../test/run-checks.js';
import { eventHub } from './follow.js';

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const look = tool({
  name: 'look',
  description: 'Looks something up.',
  input: z.object({ at: z.string() }),
  execute({ at }, ctx) {
    ctx.update(`Looking at ${at} …`);
    return `Found ${at}.`;
  },
});
const busy = Object.assign(new Error('busy'), { status: 503 });

/** Two turns: a call, an answer that is taken back in the middle, and the answer that counts. */
const script = () => [
  toolCalls({ name: 'look', args: { at: 'x' } }, { name: 'look', args: { at: 'y' } }),
  failWith(busy, 'Good mor'),
  chunks('Good ', 'even', 'ing', '.'),
];

const agentOn = (store: Store): Agent =>
  new Agent({
    model: scriptedModel(script()),
    tools: [look],
    toolExecution: 'sequential',
    middleware: [retry({ minDelayMs: 1, maxDelayMs: 1 })],
    store,
  });

const viewOf = (sent: readonly SentEvent[]): View =>
  sent.reduce((view, { event }) => applyEvent(view, event), EMPTY_VIEW);

async function all(events: AsyncIterable<SentEvent>): Promise<SentEvent[]> {
  const sent: SentEvent[] = [];
  for await (const one of events) sent.push(one);
  return sent;
}

/** The events of a whole run, read live. */
async function readLive(store: Store): Promise<SentEvent[]> {
  const hub = eventHub({ store, show: { tools: true } });
  const session = agentOn(store).session('s');
  const run = await hub.publish('s', () => session.stream('Hi'));
  const reader = run.reader();
  const sent: SentEvent[] = [];
  for (let batch = await reader.next(); batch; batch = await reader.next()) sent.push(...batch);
  await run.ended;
  return sent;
}

const typesOf = (sent: readonly SentEvent[]): string[] => sent.map(({ event }) => event.type);

describe('following a run', () => {
  it('shows the run live, including text that was taken back', async () => {
    const sent = await readLive(memoryStore());
    expect(typesOf(sent)).toEqual([
      'agent_start',
      'message_start',
      'message_end',
      'message_start',
      'message_update',
      'message_update',
      'message_end',
      'tool_execution_start',
      'tool_execution_start',
      'tool_execution_update',
      'tool_execution_end',
      'tool_execution_update',
      'tool_execution_end',
      'message_start',
      'message_update',
      'message_reset',
      'message_update',
      'message_update',
      'message_update',
      'message_update',
      'message_end',
      'agent_end',
    ]);
    expect(new Set(sent.map(({ id }) => id)).size).toBe(sent.length);
    const view = viewOf(sent);
    expect(view.messages.map(({ content }) => content).at(-1)).toEqual([
      { type: 'text', text: 'Good evening.' },
    ]);
    expect(view.status).toBe('done');
  });

  it('shows the same afterwards from the journal, in other processes too', async () => {
    const store = memoryStore();
    const live = viewOf(await readLive(store));
    const told = await all(eventHub({ store, show: { tools: true } }).follow('s'));
    expect(viewOf(told)).toEqual(live);
    expect(typesOf(told)).not.toContain('message_reset');
    expect(await all(eventHub({ store, show: { tools: true } }).follow('s'))).toEqual(told);
  });

  it('continues after the id of any event, in another process, with each fact once', async () => {
    const store = memoryStore();
    const sent = await readLive(store);
    const whole = viewOf(sent);
    for (const [i, { id }] of sent.entries()) {
      const rest = await all(eventHub({ store, show: { tools: true } }).follow('s', { after: id }));
      const both = [...sent.slice(0, i + 1), ...rest];
      expect(viewOf(both), `cut after ${id}`).toEqual(whole);
      const ends = both.filter(({ event }) => event.type.endsWith('_end') && event.type !== 'agent_end');
      expect(ends, `cut after ${id}`).toHaveLength(5);
      expect(new Set(both.map((one) => one.id)).size, `ids after ${id}`).toBe(both.length);
      // What was shown of the answer that counts goes on where it was; what was taken back is taken back.
      const resets = rest.filter(({ event }) => event.type === 'message_reset').length;
      expect(resets, `resets after ${id}`).toBe(sent[i]!.event.type === 'message_update' && i === 14 ? 1 : 0);
    }
  });

  it('shows each delta once: the texts since the last reset are the message', async () => {
    const store = memoryStore();
    const sent = await readLive(store);
    for (const [i, { id }] of sent.entries()) {
      const rest = await all(eventHub({ store, show: { tools: true } }).follow('s', { after: id }));
      let said = '';
      for (const { event } of [...sent.slice(0, i + 1), ...rest]) {
        if (event.type === 'message_start' || event.type === 'message_reset') said = '';
        if (event.type === 'message_update' && event.delta.type === 'text') said += event.delta.text;
      }
      expect(said, `cut after ${id}`).toBe('Good evening.');
    }
  });

  it('continues live after the id of any event, without loss or repetition', async () => {
    const read = async (cut: number): Promise<SentEvent[]> => {
      const store = memoryStore();
      const hub = eventHub({ store, show: { tools: true } });
      const gate = gated();
      const session = new Agent({ model: gate.model, store, newId: () => 'r' }).session('s');
      const run = await hub.publish('s', () => session.stream('Hi'));
      const first: SentEvent[] = [];
      for await (const one of hub.follow('s')) if (first.push(one) > cut) break;
      const again = hub.follow('s', { after: first.at(-1)!.id });
      gate.open();
      const rest = await all(again);
      await run.ended;
      return [...first, ...rest];
    };
    const whole = (await read(0)).map(({ event }) => event);
    for (let cut = 1; cut < 6; cut++) {
      const sent = await read(cut);
      expect(
        sent.map(({ event }) => event),
        `cut after ${cut}`,
      ).toEqual(whole);
      expect(new Set(sent.map(({ id }) => id)).size).toBe(sent.length);
    }
  });

  it('gives a late reader the message so far, then the rest', async () => {
    const store = memoryStore();
    const hub = eventHub({ store });
    const gate = gated();
    const run = await hub.publish('t', () =>
      new Agent({ model: gate.model, store }).session('t').stream('Hi'),
    );
    for (let i = 0; i < 20; i++) await settle();
    const reader = hub.reader('t');
    const first = await reader.next();
    expect(first!.map(({ event }) => (event.type === 'message_update' ? event.delta : event.type))).toEqual([
      'agent_start',
      'message_start',
      'message_end',
      'message_start',
      { type: 'text', block: 0, text: 'So far' },
    ]);
    gate.open();
    const rest: SentEvent[] = [];
    for (let batch = await reader.next(); batch; batch = await reader.next()) rest.push(...batch);
    await run.ended;
    const [delta] = rest;
    expect(delta!.event).toMatchObject({ delta: { text: ', so good.' } });
    expect(viewOf([...first!, ...rest]).status).toBe('done');
  });

  it('follows a run of another process by its journal', async () => {
    const store = memoryStore();
    const gate = gated();
    const there = new Agent({ model: gate.model, store }).session('s').stream('Hi').detach();
    for (let i = 0; i < 20; i++) await settle();
    const clock = fakeClock();
    const reader = eventHub({ store, clock, pollMs: [100, 400] }).reader('s');
    const first = await reader.next();
    expect(typesOf(first!)).toEqual(['agent_start', 'message_start', 'message_end']);
    const next = reader.next();
    gate.open();
    await there.result;
    await clock.advance(100);
    expect(typesOf((await next)!)).toEqual(['message_start', 'message_update', 'message_end', 'agent_end']);
    expect(await reader.next()).toBeUndefined();
  });

  it('polls less and less often, and at once when it is woken', async () => {
    const inner = memoryStore();
    let reads = 0;
    const store = storeWith(inner, {
      read: (id, from) => {
        reads++;
        return inner.read(id, from);
      },
    });
    const gate = gated();
    const there = new Agent({ model: gate.model, store: inner }).session('s').stream('Hi').detach();
    for (let i = 0; i < 20; i++) await settle();
    const clock = fakeClock();
    let wake = (): void => {};
    const hub = eventHub({
      store,
      clock,
      pollMs: [100, 400],
      watch: (_, given) => {
        wake = given;
        return () => {};
      },
    });
    const reader = hub.reader('s');
    await reader.next();
    reads = 0;
    const next = reader.next();
    for (let i = 0; i < 20; i++) {
      await clock.advance(100);
      await settle();
    }
    expect(reads).toBeLessThan(9);
    gate.open();
    await there.result;
    wake();
    expect(typesOf((await next)!).at(-1)).toBe('agent_end');
  });

  it('hears of a change that comes while it reads the journal', async () => {
    const inner = memoryStore();
    let change: (() => Promise<void>) | undefined;
    const store = storeWith(inner, {
      async read(id, from) {
        const entries = await inner.read(id, from);
        await change?.();
        return entries;
      },
    });
    const gate = gated();
    const there = new Agent({ model: gate.model, store: inner }).session('s').stream('Hi').detach();
    for (let i = 0; i < 20; i++) await settle();
    const watching = new Set<() => void>();
    const hub = eventHub({
      store,
      clock: fakeClock(),
      watch: (_, wake) => {
        watching.add(wake);
        return () => watching.delete(wake);
      },
    });
    const reader = hub.reader('s');
    await reader.next();
    change = async () => {
      change = undefined;
      gate.open();
      await there.result;
      for (const wake of watching) wake();
    };
    // The clock stands still, so it looks again only because it was woken.
    expect(typesOf((await reader.next())!).at(-1)).toBe('agent_end');
    expect(watching.size).toBe(0);
  });

  it('does not have the store watched for a run of its own process', async () => {
    const store = memoryStore();
    const gate = gated();
    const session = new Agent({ model: gate.model, store }).session('s');
    let watched = 0;
    const hub = eventHub({
      store,
      watch: () => {
        watched++;
        return () => {};
      },
    });
    const { reader } = await hub.publish('s', () => session.stream('Hi'));
    const reading = reader();
    await reading.next();
    gate.open();
    while (await reading.next());
    expect(watched).toBe(0);
  });

  it('ends where the run waits for answers, with the same ids live and from the journal', async () => {
    const store = memoryStore();
    const asking = (steps: Parameters<typeof scriptedModel>[0]) =>
      new Agent({ model: scriptedModel(steps), tools: [look], middleware: [approval()], store }).session('s');
    const hub = eventHub({ store });
    const run = await hub.publish('s', () =>
      asking([toolCalls({ name: 'look', args: { at: 'x' } })]).stream('Hi'),
    );
    const reader = run.reader();
    const live: SentEvent[] = [];
    for (let batch = await reader.next(); batch; batch = await reader.next()) live.push(...batch);
    expect(typesOf(live).slice(-4)).toEqual([
      'tool_execution_start',
      'tool_execution_waiting',
      'suspended',
      'agent_end',
    ]);
    const clock = fakeClock();
    const elsewhere = eventHub({ store, clock });
    const late = all(elsewhere.follow('s'));
    for (let i = 0; i < 5; i++) {
      await settle();
      await clock.advance(100);
    }
    const told = await late;
    expect(told.slice(-3).map(({ id }) => id)).toEqual(live.slice(-3).map(({ id }) => id));
    expect(viewOf(told)).toEqual(viewOf(live));
    expect(await elsewhere.reader('s', { after: live.at(-1)!.id }).hasMore()).toBe(false);
    const [question] = viewOf(live).questions;
    const again = await hub.publish('s', () =>
      asking([text('Done.')]).resumeStream({ answers: { [question!.id]: { type: 'approve' } } }),
    );
    const rest = await all(hub.follow('s', { after: live.at(-1)!.id }));
    await again.ended;
    expect(viewOf([...live, ...rest])).toMatchObject({ status: 'done', questions: [] });
    expect(typesOf(rest)).toContain('answered');
  });

  it('ends where a tool asks before other calls of the answer have begun, also in another process', async () => {
    const store = memoryStore();
    const asks = tool({
      name: 'asks',
      description: 'Asks.',
      input: z.object({}),
      execute: async (_, ctx) => (await ctx.suspend({ title: 'Really?' })).type,
    });
    const model = scriptedModel([
      toolCalls({ name: 'asks' }, { name: 'look', args: { at: 'x' } }),
      text('Done.'),
    ]);
    const agent = new Agent({ model, tools: [asks, look], toolExecution: 'sequential', store });
    const session = agent.session('s');
    const { pending } = await session.run('Hi');
    const clock = fakeClock();
    const reading = all(eventHub({ store, clock }).follow('s'));
    for (let i = 0; i < 10; i++) {
      await settle();
      await clock.advance(2000);
    }
    expect(typesOf(await reading).slice(-2)).toEqual(['suspended', 'agent_end']);
    await session.resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(viewOf(await all(eventHub({ store }).follow('s'))).status).toBe('done');
  });

  it('shows what is left after the session was rewound to the result of a tool', async () => {
    const store = memoryStore();
    const session = agentOn(store).session('s');
    const { messages } = await session.run('Hi');
    await session.rewind(messages.findLast(({ role }) => role === 'tool')!.id);
    const shown = viewOf(await all(eventHub({ store }).follow('s'))).messages;
    expect(shown.map(({ id }) => id)).toEqual(messages.slice(0, 2).map(({ id }) => id));
    await session.rewind({ before: messages[0]!.id });
    expect(viewOf(await all(eventHub({ store }).follow('s'))).messages).toEqual([]);
  });

  it('refuses a pause that is not a first and a longest one', () => {
    const options = { store: memoryStore(), pollMs: 5 } as never;
    expect(() => eventHub(options)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
  });

  it('takes back what was shown of an answer that never came, in other processes too', async () => {
    const store = memoryStore();
    const failing = new Agent({ model: scriptedModel([failWith(new Error('boom'), 'half an ans')]), store });
    const hub = eventHub({ store });
    const run = await hub.publish('s', () => failing.session('s').stream('Hi'));
    const reader = run.reader();
    const live: SentEvent[] = [];
    for (let batch = await reader.next(); batch; batch = await reader.next()) live.push(...batch);
    expect(viewOf(live).messages.map(({ role }) => role)).toEqual(['user']);
    for (const [i, { id }] of live.entries()) {
      const rest = await all(eventHub({ store }).follow('s', { after: id }));
      expect(viewOf([...live.slice(0, i + 1), ...rest]), `cut after ${id}`).toEqual(viewOf(live));
    }
  });

  it('serves a reader that is far behind from the journal and the message so far', async () => {
    const store = memoryStore();
    const many = Array.from({ length: 3000 }, (_, i) => `${i} `);
    const hub = eventHub({ store });
    const run = await hub.publish('s', () =>
      new Agent({ model: scriptedModel([chunks(...many)]), store }).session('s').stream('Hi'),
    );
    const reader = run.reader();
    const first = await reader.next();
    await run.ended;
    const sent = [...first!];
    for (let batch = await reader.next(); batch; batch = await reader.next()) sent.push(...batch);
    expect(sent.length).toBeLessThan(3000);
    expect(viewOf(sent)).toMatchObject({ status: 'done' });
    expect(viewOf(sent).messages.at(-1)!.content).toEqual([{ type: 'text', text: many.join('') }]);
  });

  it('leaves nothing at a signal that many readers share, at their end and when they are left', async () => {
    const store = memoryStore();
    await new Agent({ model: scriptedModel([text('Hello.')]), store }).session('s').run('Hi');
    const hub = eventHub({ store });
    const { signal } = new AbortController();
    await all(hub.follow('s', { signal }));
    for await (const _ of hub.follow('s', { signal, stay: true })) break;
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('says that the process of a run seems to have died instead of waiting for ever', async () => {
    // The run hangs in its model, and its process is gone: this store is all that another one sees.
    const store = memoryStore();
    const clock = fakeClock();
    const { model } = gated();
    new Agent({ model, store, clock }).session('s').stream('Hi').detach();
    for (let i = 0; i < 20; i++) await settle();
    const hub = eventHub({ store, clock, pollMs: [1000, 1000], silenceMs: 10_000 });
    const reading = all(hub.follow('s'));
    for (let i = 0; i < 30; i++) {
      await settle();
      await clock.advance(1000);
    }
    const sent = await reading;
    expect(typesOf(sent)).toEqual(['agent_start', 'message_start', 'message_end', 'stalled']);
    expect(viewOf(sent)).toMatchObject({ status: 'stalled' });
    const { id } = sent.at(-1)!;
    // Whoever asks again is told at once that there is nothing to wait for, until somebody goes on with the run.
    expect(await eventHub({ store, clock, silenceMs: 10_000 }).reader('s', { after: id }).hasMore()).toBe(
      false,
    );
    const late = await all(eventHub({ store, clock, silenceMs: 10_000 }).follow('s'));
    expect(typesOf(late)).toEqual(typesOf(sent));
    await new Agent({ model: scriptedModel([text('Hello.')]), store, clock }).session('s').resume();
    const rest = await all(eventHub({ store, clock }).follow('s', { after: id }));
    expect(typesOf(rest)).toEqual(['message_start', 'message_update', 'message_end', 'agent_end']);
  });

  it('begins with the first attempt of the last run', async () => {
    const store = memoryStore();
    const model = scriptedModel(['Before.', failWith(new Error('down')), 'Hello.']);
    const session = new Agent({ model, store }).session('s');
    await session.run('One');
    await expect(session.run('Two', { runId: 'job' })).rejects.toThrow('down');
    await session.continue({ runId: 'job~2' });
    const starts: string[] = [];
    for await (const { event } of eventHub({ store }).follow('s', { after: 'run' }))
      if (event.type === 'agent_start') starts.push(event.runId);
    expect(starts).toEqual(['job', 'job~2']);
  });

  it('refuses an id that it never sent', async () => {
    await expect(all(eventHub({ store: memoryStore() }).follow('s', { after: 'x' }))).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    });
  });
});

/** A model that says `So far`, waits, and goes on. */
function gated() {
  let open!: () => void;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const model = {
    provider: 'test',
    id: 'gated',
    async *stream() {
      yield { type: 'text' as const, text: 'So ' };
      yield { type: 'text' as const, text: 'far' };
      await gate;
      yield { type: 'text' as const, text: ', so good.' };
      yield { type: 'finish' as const, reason: 'stop' as const };
    },
  };
  return { model, open };
}

describe('a run of another process whose events are sent here', () => {
  /** Events that are told one by one. */
  function told() {
    const events: AgentEvent[] = [];
    let ended = false;
    let wake = (): void => {};
    return {
      say(...more: readonly object[]): void {
        events.push(...(more as AgentEvent[]));
        wake();
      },
      end(): void {
        ended = true;
        wake();
      },
      async *[Symbol.asyncIterator]() {
        for (;;) {
          const next = events.shift();
          if (next) yield next;
          else if (ended) return;
          else
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
        }
      },
    };
  }
  const start = (messageId: string) => ({ type: 'message_start', messageId, role: 'assistant' });
  const piece = (messageId: string, said: string) => ({
    type: 'message_update',
    messageId,
    delta: { type: 'text', block: 0, text: said },
  });

  it('switches from the journal to the events, and back when no more events come', async () => {
    const store = memoryStore();
    const gate = gated();
    const there = new Agent({ model: gate.model, store }).session('s').stream('Hi').detach();
    for (let i = 0; i < 20; i++) await settle();
    const hub = eventHub({ store, pollMs: [1, 1] });
    const entries = await store.read('s', 1);
    const events = told();
    hub.mirror('s', entries.at(-1)!.seq, events);
    expect(hub.isLive('s')).toBe(false);
    const reader = hub.reader('s');
    const sent: SentEvent[] = [...(await reader.next())!];
    events.say(start('elsewhere'), piece('elsewhere', 'So '), piece('elsewhere', 'far'));
    while (sent.filter(({ event }) => event.type === 'message_update').length < 2)
      sent.push(...(await reader.next())!);
    expect(typesOf(sent).slice(-3)).toEqual(['message_start', 'message_update', 'message_update']);
    // The other process is gone; what it had said came to nothing, and the run went on without a word.
    events.end();
    gate.open();
    await there.result;
    for (let batch = await reader.next(); batch; batch = await reader.next()) sent.push(...batch);
    expect(typesOf(sent)).toContain('message_reset');
    expect(typesOf(sent).at(-1)).toBe('agent_end');
    expect(viewOf(sent)).toEqual(viewOf(await all(eventHub({ store }).follow('s'))));
  });

  it('can be read by somebody who has read ahead in the journal', async () => {
    const store = memoryStore();
    await store.append('s', 0, [
      { v: 2, at: 1, type: 'run_start', runId: 'r', plan: [] },
      { v: 2, at: 1, type: 'message', runId: 'r', message: { ...userMessage('Hi'), id: 'r.1' } },
      { v: 2, at: 1, type: 'active', runId: 'r', ms: 5 },
    ]);
    const hub = eventHub({ store, pollMs: [1, 1] });
    const reader = hub.reader('s');
    const sent: SentEvent[] = [...(await reader.next())!];
    const events = told();
    hub.mirror('s', 2, events);
    events.say(start('r.2'), piece('r.2', 'Hello'));
    while (!typesOf(sent).includes('message_update')) sent.push(...(await reader.next())!);
    reader.leave();
    expect(typesOf(sent).slice(-2)).toEqual(['message_start', 'message_update']);
  });
});
