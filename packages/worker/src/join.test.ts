// Following a run of another process piece by piece.

import { getEventListeners } from 'node:events';
import { Agent, defineMiddleware, type Model, textOf, tool, window } from 'allium';
import { applyEvent, EMPTY_VIEW, type SentEvent } from 'allium/http/client';
import { approval } from 'allium/middleware/approval';
import { retry } from 'allium/middleware/retry';
import { chunks, failWith, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { useFleets } from '../test/fleet.js';
import type { AgentQueue } from './index.js';

const { fleet, redis: server } = useFleets();

/** A model that says one piece whenever it is told to. */
function spoken(...lines: readonly (readonly string[])[]) {
  let allowed = 0;
  let wake = (): void => {};
  let line = 0;
  const model: Model = {
    provider: 'test',
    id: 'spoken',
    async *stream(_request, { signal }) {
      const pieces = lines[line++] ?? [];
      for (const piece of pieces) {
        while (allowed === 0) {
          await new Promise<void>((resolve, reject) => {
            wake = resolve;
            signal.addEventListener('abort', () => reject(signal.reason), { once: true });
          });
        }
        allowed--;
        yield { type: 'text', text: piece };
      }
      yield { type: 'finish', reason: 'stop', usage: { inputTokens: 1, outputTokens: 1 } };
    },
  };
  return {
    model,
    say(pieces = 1): void {
      allowed += pieces;
      wake();
    },
  };
}

/** A reader that says what it has got so far. */
function follow(queue: AgentQueue, sessionId: string, after?: string) {
  const sent: SentEvent[] = [];
  let fail: unknown;
  const reader = queue.reader(sessionId, after === undefined ? {} : { after });
  const ended = (async () => {
    for (let batch = await reader.next(); batch; batch = await reader.next()) sent.push(...batch);
  })().catch((error) => {
    fail = error;
  });
  const said = (): string => {
    if (fail) throw fail;
    let text = '';
    for (const { event } of sent) {
      if (event.type === 'message_start' || event.type === 'message_reset') text = '';
      if (event.type === 'message_update' && event.delta.type === 'text') text += event.delta.text;
    }
    return text;
  };
  const types = (): string[] => sent.map(({ event }) => event.type);
  const view = () => sent.reduce((seen, { event }) => applyEvent(seen, event), EMPTY_VIEW);
  return { sent, ended, said, types, view, leave: () => reader.leave() };
}

const soon = { interval: 5 };

describe('join, piece by piece', () => {
  it('sends every piece as it comes, once to each of several readers in several processes', async () => {
    const { queue, work, another } = fleet();
    const { model, say } = spoken(['Good ', 'even', 'ing', '.']);
    await work({ a: new Agent({ model }) });
    const { sessionId, runId } = await queue.enqueue('a', 'Hi.');
    const readers = [queue, queue, another()].map((one) => follow(one, sessionId));
    for (const expected of ['Good ', 'Good even', 'Good evening', 'Good evening.']) {
      say();
      for (const reader of readers) await expect.poll(reader.said, soon).toBe(expected);
      if (expected !== 'Good evening.') expect(await queue.outcome(runId)).toBe(undefined);
    }
    await Promise.all(readers.map(({ ended }) => ended));
    for (const { sent, types } of readers) {
      expect(types()).toEqual([
        'agent_start',
        'message_start',
        'message_end',
        'message_start',
        ...Array(4).fill('message_update'),
        'message_end',
        'agent_end',
      ]);
      expect(new Set(sent.map(({ id }) => id)).size).toBe(sent.length);
    }
  });

  it('gives the text so far to a reader who comes in the middle of a message, and goes on', async () => {
    const { queue, work, another } = fleet();
    const { model, say } = spoken(['So ', 'far', ', so ', 'good.']);
    await work({ a: new Agent({ model }) });
    const { sessionId } = await queue.enqueue('a', 'Hi.');
    const first = follow(queue, sessionId);
    say(2);
    await expect.poll(first.said, soon).toBe('So far');
    const late = follow(another(), sessionId);
    await expect.poll(late.said, soon).toBe('So far');
    // In one piece: it was there already.
    expect(late.types().filter((type) => type === 'message_update').length).toBe(1);
    say(2);
    await Promise.all([first.ended, late.ended]);
    expect([first.said(), late.said()]).toEqual(['So far, so good.', 'So far, so good.']);
    expect(late.view()).toEqual(first.view());
  });

  it('gives the text so far even if nobody followed before', async () => {
    const { queue, work } = fleet();
    const pieces = Array.from({ length: 50 }, (_, i) => `${i} `);
    const { model, say } = spoken([...pieces, 'end.']);
    const spokenOnce = new Promise<void>((resolve) => {
      const agent = new Agent({
        model,
        observers: [
          (event) => {
            if (event.type === 'message_update' && event.delta.type === 'text' && event.delta.text === '49 ')
              resolve();
          },
        ],
      });
      void work({ a: agent });
    });
    const { sessionId } = await queue.enqueue('a', 'Hi.');
    say(50);
    await spokenOnce;
    const reader = follow(queue, sessionId);
    await expect.poll(reader.said, soon).toBe(pieces.join(''));
    say();
    await reader.ended;
    expect(reader.said()).toBe(`${pieces.join('')}end.`);
  });

  it('takes back what the worker takes back', async () => {
    const { queue, work } = fleet();
    const busy = Object.assign(new Error('busy'), { status: 503 });
    const model = scriptedModel([failWith(busy, 'Good mor'), text('Good evening.')]);
    await work({ a: new Agent({ model, middleware: [retry({ minDelayMs: 1, maxDelayMs: 1 })] }) });
    const waiting = follow(queue, 's');
    await waiting.ended;
    const { sessionId } = await queue.enqueue('a', 'Hi.', { sessionId: 's' });
    const reader = follow(queue, sessionId);
    await reader.ended;
    expect(reader.said()).toBe('Good evening.');
    expect(reader.view().messages.at(-1)).toMatchObject({
      content: [{ type: 'text', text: 'Good evening.' }],
    });
  });

  it('goes on after the id of any event, in any process, while the run is under way', async () => {
    const { queue, work, another } = fleet();
    const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });
    const { model, say } = spoken(['One ', 'two ', 'three.']);
    let turn = 0;
    const first = scriptedModel([toolCalls({ name: 'look', args: {} })]);
    const both: Model = {
      provider: 'test',
      id: 'both',
      stream: (request, options) => (++turn === 1 ? first : model).stream(request, options),
    };
    await work({ a: new Agent({ model: both, tools: [look] }) });
    const { sessionId } = await queue.enqueue('a', 'Count.');
    const whole = follow(queue, sessionId);
    say(2);
    await expect.poll(whole.said, soon).toBe('One two ');
    const seen = [...whole.sent];
    const cuts = seen.map(({ id }) => follow(another(), sessionId, id));
    const here = seen.map(({ id }) => follow(queue, sessionId, id));
    // The last one has nothing to tell yet; all others have told what there is.
    for (const [i, reader] of [...cuts, ...here].entries())
      if (i % seen.length !== seen.length - 1)
        await expect.poll(() => reader.sent.length, soon).toBeGreaterThan(0);
    say();
    await Promise.all([whole, ...cuts, ...here].map(({ ended }) => ended));
    for (const [i, reader] of [...cuts, ...here].entries()) {
      const all = [...seen.slice(0, (i % seen.length) + 1), ...reader.sent];
      const view = all.reduce((told, { event }) => applyEvent(told, event), EMPTY_VIEW);
      expect(view, `cut ${i}`).toEqual(whole.view());
      expect(new Set(all.map(({ id }) => id)).size, `cut ${i}`).toBe(all.length);
      const ends = all.filter(
        ({ event }) => event.type === 'message_end' || event.type === 'tool_execution_end',
      );
      expect(ends.length, `cut ${i}`).toBe(4);
      expect(all.filter(({ event }) => event.type === 'message_reset')).toEqual([]);
    }
  });

  it('publishes only what guards release', async () => {
    const { queue, work, redis } = fleet();
    const { model, say } = spoken(['The code is ', 'sec', 'ret, ', 'as you know.']);
    const guard = defineMiddleware({
      name: 'codes',
      guard: {
        on: ['output'],
        hold: window(6),
        find: (text) => [...text.matchAll(/secret/g)].map(({ index }) => ({ start: index, end: index + 6 })),
        replacement: '[code]',
      },
    });
    await work({ a: new Agent({ model, middleware: [guard] }) });
    const heard: string[] = [];
    const tap = redis.duplicate();
    tap.on('pmessage', (_pattern, _channel, message) => void heard.push(message));
    await tap.psubscribe('*');
    const { sessionId } = await queue.enqueue('a', 'Hi.');
    const reader = follow(queue, sessionId);
    for (let i = 0; i < 4; i++) {
      say();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await reader.ended;
    tap.disconnect();
    expect(reader.said()).toBe('The code is [code], as you know.');
    expect(heard.join('\n')).toContain('The');
    expect(heard.join('\n')).not.toContain('secret');
    expect(reader.types()).not.toContain('message_reset');
  });

  it('tells the result of a tool before the model has answered it', async () => {
    const { queue, work } = fleet();
    const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });
    const { model, say } = spoken(['Done.']);
    let turn = 0;
    const first = scriptedModel([toolCalls({ name: 'look', args: {} })]);
    const both: Model = {
      provider: 'test',
      id: 'both',
      stream: (request, options) => (++turn === 1 ? first : model).stream(request, options),
    };
    await work({ a: new Agent({ model: both, tools: [look] }) });
    const { sessionId } = await queue.enqueue('a', 'Look.');
    const reader = follow(queue, sessionId);
    await expect.poll(() => reader.types().at(-1), soon).toBe('tool_execution_end');
    say();
    await reader.ended;
    expect(reader.types().at(-1)).toBe('agent_end');
  });

  it('tells a question at once, and what comes of it after the answer', async () => {
    const { queue, work } = fleet();
    const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });
    const model = scriptedModel([toolCalls({ name: 'look', args: {} }), text('Seen.')]);
    await work({
      a: new Agent({ model, tools: [look], middleware: [approval({ policy: { look: 'ask' } })] }),
    });
    const { sessionId, runId } = await queue.enqueue('a', 'Look.');
    const reader = follow(queue, sessionId);
    await reader.ended;
    expect(reader.types().slice(-2)).toEqual(['suspended', 'agent_end']);
    const { pending } = await queue.finished(runId);
    await queue.answer(pending![0]!.id, { type: 'approve' });
    const rest = follow(queue, sessionId, reader.sent.at(-1)!.id);
    await rest.ended;
    expect(rest.types()).toEqual(expect.arrayContaining(['answered', 'tool_execution_end', 'agent_end']));
    expect(rest.said()).toBe('Seen.');
  });

  it('follows the runs of a session one after the other', async () => {
    const { queue, work } = fleet();
    const { model, say } = spoken(['One', '.'], ['Two', '.']);
    await work({ a: new Agent({ model }) });
    await queue.enqueue('a', 'First.', { sessionId: 's' });
    await queue.enqueue('a', 'Second.', { sessionId: 's' });
    const reader = follow(queue, 's');
    say();
    await expect.poll(reader.said, soon).toBe('One');
    say(2);
    await expect.poll(reader.said, soon).toBe('Two');
    say();
    await reader.ended;
    expect(reader.types().filter((type) => type === 'agent_end').length).toBe(2);
  });
});

describe('join, when something goes wrong', () => {
  it('takes back the text of a worker that lost its job, and sends that of the next one', async () => {
    const { queue, work, redis } = fleet();
    const { model, say } = spoken(['Half a ', 'sentence'], ['A whole ', 'sentence.']);
    const agent = new Agent({ model });
    await work({ a: agent }, { lockMs: 400 });
    const { sessionId, runId } = await queue.enqueue('a', 'Hi.');
    const reader = follow(queue, sessionId);
    say();
    await expect.poll(reader.said, soon).toBe('Half a ');
    await redis.del(`{${queue.prefix}}:runs:${runId}:lock`);
    await expect.poll(() => reader.types().includes('message_reset'), soon).toBe(true);
    say(2);
    await reader.ended;
    expect(reader.said()).toBe('A whole sentence.');
    expect(reader.view().messages.map(({ content }) => content)).toEqual([
      [{ type: 'text', text: 'Hi.' }],
      [{ type: 'text', text: 'A whole sentence.' }],
    ]);
    expect(reader.types().filter((type) => type === 'agent_end').length).toBe(1);
  });

  it('goes on when Redis was restarted meanwhile', async () => {
    const { queue, work } = fleet();
    const { model, say } = spoken(['Before', ', and ', 'after.']);
    await work({ a: new Agent({ model }) });
    const { sessionId } = await queue.enqueue('a', 'Hi.');
    const reader = follow(queue, sessionId);
    say();
    await expect.poll(reader.said, soon).toBe('Before');
    await server().crash();
    say();
    await expect.poll(reader.said, soon).toBe('Before, and ');
    say();
    await reader.ended;
    expect(reader.said()).toBe('Before, and after.');
    expect(reader.types()).not.toContain('message_reset');
    expect(reader.types().filter((type) => type === 'agent_end').length).toBe(1);
  });

  it('leaves nothing at a signal that many readers share', async () => {
    const { queue, work } = fleet();
    await work({ a: new Agent({ model: scriptedModel([text('One.'), text('Two.')]) }) });
    const { signal } = new AbortController();
    // The second one is followed beyond the end of the first run.
    await queue.enqueue('a', 'Hi.', { sessionId: 's' });
    await queue.enqueue('a', 'Hi again.', { sessionId: 's' });
    for await (const _ of queue.join('s', { signal }));
    for await (const _ of queue.join('s', { signal })) break;
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('lets the run go on when its reader leaves', async () => {
    const { queue, work } = fleet();
    const { model, say } = spoken(['One ', 'two.']);
    await work({ a: new Agent({ model }) });
    const { sessionId, runId } = await queue.enqueue('a', 'Hi.');
    const reader = follow(queue, sessionId);
    say();
    await expect.poll(reader.said, soon).toBe('One ');
    reader.leave();
    await reader.ended;
    say();
    expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'One two.' });
  });

  it('costs Redis nothing while nobody follows', async () => {
    const { queue, work, redis, store } = fleet();
    const pieces = Array.from({ length: 200 }, (_, i) => `${i} `);
    const agent = new Agent({ model: scriptedModel([chunks(...pieces)], { repeat: true }) });
    await work({ a: agent });
    const published = async (): Promise<number> =>
      Number(/cmdstat_publish:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);
    const run = async () => {
      const before = await published();
      const { runId, sessionId } = await queue.enqueue('a', 'Count.');
      expect(await queue.finished(runId)).toMatchObject({ text: pieces.join('') });
      expect((await agent.session(sessionId, { store }).messages()).map(textOf).at(-1)).toBe(pieces.join(''));
      return (await published()) - before;
    };
    // One that asks who follows, when it begins, and one that says that it has ended.
    expect(await run()).toBe(2);
  });
});
