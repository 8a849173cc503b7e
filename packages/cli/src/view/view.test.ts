// The order in which a run is shown: events, questions and what others write to the console.

import { PassThrough } from 'node:stream';
import { Agent, type AgentEvent, defineMiddleware, type Model, tool } from 'allium';
import { approval } from 'allium/middleware';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { makeIo } from '../terminal/io.js';
import { narrate } from './live.js';
import { follow, type View } from './view.js';

const named = (name: string, execute: () => string | Promise<string> = () => 'ok') =>
  tool({ name, description: name, input: z.object({}), execute });

function recorder(log = true) {
  const seen: string[] = [];
  const told = (event: AgentEvent): string => {
    if (event.type === 'message_update') return event.delta.type === 'text' ? `"${event.delta.text}"` : '';
    if (event.type === 'tool_execution_end') return `end ${event.toolCall.name}`;
    return event.type === 'message_end' || event.type === 'agent_end' ? event.type : '';
  };
  const view: View = {
    event(event) {
      const what = told(event);
      if (what !== '') seen.push(what);
    },
    pause() {},
    request: ({ toolName }) => seen.push(`asks ${toolName}`),
    answer: (_, { type }) => seen.push(type),
    ...(log && { log: (line: string) => void seen.push(`log ${line}`) }),
  };
  return { seen, view };
}

describe('follow', () => {
  it('asks after showing what led to the question, and shows nothing while it is open', async () => {
    const { seen, view } = recorder();
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'pay', text: 'Both.' }, { name: 'look' }), text('Done.')]),
      tools: [named('pay'), named('look')],
      middleware: [approval({ policy: { pay: 'ask', '*': 'allow' } })],
    });
    const { result } = await follow((onRequest) => agent.stream('go', { onRequest }), view, {
      paceMs: 1,
      ask: async (request) => {
        seen.push('open');
        await new Promise((resolve) => setTimeout(resolve, 20));
        seen.push('closed');
        return { type: 'approve', hash: request.hash };
      },
    });
    expect(result?.status).toBe('done');
    const at = seen.indexOf('open');
    expect(seen.slice(at - 1, at + 3)).toEqual(['asks pay', 'open', 'closed', 'approve']);
    expect(seen.indexOf('"Both."')).toBeLessThan(at - 1);
    expect(seen.indexOf('message_end')).toBeLessThan(at - 1);
    expect(seen.at(-1)).toBe('agent_end');
  });

  it('keeps lines of the console out of a message, and gives the console back', async () => {
    const { seen, view } = recorder();
    const before = console.log;
    const loud: Model = {
      ...scriptedModel([]),
      async *stream() {
        for (const piece of ['One ', 'two ', 'three.']) {
          yield { type: 'text', text: piece };
          await new Promise(setImmediate);
          console.log('%s\nheard', piece.trim());
        }
        yield { type: 'finish', reason: 'stop', usage: { inputTokens: 1, outputTokens: 1 } };
      },
    };
    const agent = new Agent({ model: loud });
    await follow(() => agent.stream('go'), view);
    expect(console.log).toBe(before);
    const said = seen.findIndex((what) => what.startsWith('"'));
    expect(seen.slice(said)).toEqual([
      '"One "',
      '"two "',
      '"three."',
      'message_end',
      ...['One', 'heard', 'two', 'heard', 'three.', 'heard'].map((line) => `log ${line}`),
      'agent_end',
    ]);
  });

  it('leaves the console alone for a view that has no place for its lines', async () => {
    const { seen, view } = recorder(false);
    const log = vi.spyOn(console, 'log').mockImplementation(() => {});
    try {
      const chatty = defineMiddleware({ name: 'chatty', afterModel: () => console.log('after') });
      const agent = new Agent({ model: scriptedModel(['Hi.']), middleware: [chatty] });
      await follow(() => agent.stream('go'), view);
      expect(log).toHaveBeenCalledExactlyOnceWith('after');
      expect(seen.at(-1)).toBe('agent_end');
    } finally {
      log.mockRestore();
    }
  });

  it('suspends the run if nobody can be asked, and returns the error of a run that cannot start', async () => {
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'pay' })]),
      tools: [named('pay')],
      middleware: [approval({ policy: { '*': 'ask' } })],
    });
    const { view } = recorder();
    const { result } = await follow((onRequest) => agent.stream('go', { onRequest }), view);
    expect(result?.status).toBe('suspended');
    const oh = new Error('oh');
    const failed = await follow(() => {
      throw oh;
    }, view);
    expect(failed).toEqual({ result: undefined, error: oh });
  });
});

it("a call's duration is measured when its events come, not when they are shown", async () => {
  const stream = () => new PassThrough();
  const io = makeIo({ stdin: stream(), stdout: stream(), stderr: stream(), env: {}, cwd: '.' });
  const lines: string[] = [];
  const show = narrate(io, { text() {}, line: (line) => lines.push(line) }, () => 0);
  const agent = new Agent({
    model: scriptedModel([toolCalls({ name: 'look' }), text('Done.')]),
    tools: [named('look')],
  });
  for await (const event of agent.stream('go')) show(event, event.type === 'tool_execution_end' ? 350 : 100);
  expect(lines).toEqual(['  → look {}', '  ✓ look (250 ms)']);
});
