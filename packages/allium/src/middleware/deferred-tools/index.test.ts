import { defineMiddleware, memoryStore, tool } from 'allium';
import { approval, ask } from 'allium/middleware/approval';
import { deferredTools, type ToolGroup } from 'allium/middleware/deferred-tools';
import { collect, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

import {
  billing,
  echo,
  groupOf,
  load,
  results,
  setup,
  via,
} from '../../../../../test/deferred-tools-setup.js';

const toolNames = (request: { tools: readonly { name: string }[] } | undefined) =>
  request?.tools.map(({ name }) => name);

for (const strategy of ['dispatch', 'inject'] as const) {
  testMiddleware(() => deferredTools({ groups: [billing()], strategy }), {
    name: `deferred-tools (${strategy})`,
    neutral: () => deferredTools({ groups: [], strategy }),
    scenarios: [
      {
        name: 'tools that are loaded and called',
        answers: [
          toolCalls(load('billing')),
          toolCalls(strategy === 'dispatch' ? via('invoice') : { name: 'invoice', args: { id: 1 } }),
          text('done'),
        ],
      },
      {
        name: 'groups and tools that do not exist',
        answers: [toolCalls(load('nothing'), via('nothing', {}, 'b')), text('done')],
      },
    ],
    describe,
    it,
  });
}
testMiddleware(() => deferredTools({ groups: [billing()] }), {
  name: 'deferred-tools that nobody uses',
  changes: ['system-prompt', 'tools'],
  describe,
  it,
});

describe('deferred-tools, dispatch', () => {
  it('shows a catalogue, loads a group and runs its tool', async () => {
    const { agent, model, group } = setup([
      toolCalls(load('billing')),
      toolCalls(via('refund', { id: 7 })),
      text('done'),
    ]);
    const { messages, status } = await agent.run('go');
    expect(status).toBe('done');
    const [loaded, refunded] = results(messages);
    expect(loaded).toContain('Group "billing", to be called with deferred_tool_call:\n{"name":"invoice"');
    expect(loaded).toContain('"required":["id"]');
    expect(refunded).toBe('refund 7');
    expect(group.loads).toBe(1);
    expect(model.requests[0]?.systemPrompt).toContain(
      '- billing (billing): Everything about billing. Tools: invoice, refund',
    );
  });

  it('shows the same bytes whatever is loaded', async () => {
    const { agent, model } = setup(
      [toolCalls(load('billing')), toolCalls(via('refund')), text('done')],
      {},
      { systemPrompt: 'Be kind.' },
    );
    await agent.run('go');
    expect(new Set(model.requests.map(({ systemPrompt }) => systemPrompt)).size).toBe(1);
    expect(model.requests[0]?.systemPrompt).toMatch(/^Be kind\.\n\n## More tools\n/);
    for (const request of model.requests)
      expect(toolNames(request)).toEqual(['load_tools', 'deferred_tool_call']);
  });

  it('loads a group for a call that nobody loaded it for', async () => {
    const { agent, group } = setup([toolCalls(via('invoice')), text('done')]);
    expect(results((await agent.run('go')).messages)).toEqual(['invoice 1']);
    expect(group.loads).toBe(1);
  });

  it('validates the arguments of the real tool', async () => {
    const { agent } = setup([toolCalls(via('invoice', { id: 'one' })), text('done')]);
    expect(results((await agent.run('go')).messages)[0]).toContain('Invalid arguments for "invoice":\nid: ');
  });

  it('takes arguments written as JSON text, and none where there are none', async () => {
    const ping = groupOf('net', ['ping'], (name) =>
      tool({ name, description: '', input: z.object({}), execute: () => 'pong' }),
    );
    const script = [
      toolCalls(via('invoice', '{"id":3}'), {
        name: 'deferred_tool_call',
        args: { tool_name: 'ping' },
        id: 'b',
      }),
      text('done'),
    ];
    const { agent } = setup(script, { groups: [billing(), ping] });
    expect(results((await agent.run('go')).messages)).toEqual(['invoice 3', 'pong']);
  });

  it.each([
    [via('invoise'), 'There is no tool "invoise" in the catalogue. Did you mean "invoice"?'],
    [
      via('own'),
      'There is no tool "own" in the catalogue. If it is one of your own tools, call it directly.',
    ],
    [
      { name: 'deferred_tool_call', args: { tool_name: 'invoice', id: 1 } },
      'id: Unknown property. Expected: tool_name, arguments.',
    ],
    [
      { name: 'deferred_tool_call', args: '{"tool_name":' },
      'The arguments of "deferred_tool_call" are not valid JSON',
    ],
    [load('biling'), 'There is no group "biling". Did you mean "billing"? Groups: billing.'],
    [load(), 'groups: Expected a list of texts, at least 1.'],
    [
      { name: 'invoice', args: { id: 1 } },
      'There is no tool "invoice". Available: own, load_tools, deferred_tool_call.',
    ],
  ])('tells the model what is wrong with %j', async (call, message) => {
    const { agent, group } = setup([toolCalls(call), text('done')], {}, { tools: [echo('own')] });
    const { messages } = await agent.run('go');
    expect(results(messages)[0]).toContain(message);
    expect(messages[2]).toMatchObject({ isError: true });
    expect(group.loads).toBe(0);
  });

  it('loads what it can of several groups', async () => {
    const { agent } = setup([toolCalls(load('billing', 'nothing', 'billing')), text('done')]);
    const { messages } = await agent.run('go');
    expect(results(messages)[0]).toMatch(/^Group "billing"[\s\S]*There is no group "nothing"/);
    expect(results(messages)[0]!.match(/Group "billing"/g)).toHaveLength(1);
    expect(messages[2]).toMatchObject({ isError: false });
  });

  it('does not answer for a dispatch tool that was taken out of the request', async () => {
    const remove = defineMiddleware({
      name: 'remove',
      beforeModel(ctx) {
        ctx.tools = ctx.tools.filter(({ name }) => name !== 'deferred_tool_call');
      },
    });
    const { agent, group } = setup([toolCalls(via('invoice')), text('done')], {}, { middleware: [remove] });
    expect(results((await agent.run('go')).messages)[0]).toContain('There is no tool "deferred_tool_call"');
    expect(group.loads).toBe(0);
  });
});

describe('deferred-tools, to everything that judges and wraps calls', () => {
  it('is the real tool for hooks, layers and guards, and the call the model made for the history', async () => {
    const seen: unknown[] = [];
    const watch = defineMiddleware({
      name: 'watch',
      beforeToolCall: (ctx) => void seen.push(['before', ctx.toolCall.name, ctx.tool?.name, ctx.args]),
      wrapTool(ctx, next) {
        seen.push(['wrap', ctx.toolCall.name, ctx.args]);
        return next();
      },
      afterToolCall: (ctx) => void seen.push(['after', ctx.toolCall.name]),
      guard: {
        on: ['tool-args'],
        judge: ({ toolCall, args }) => void seen.push(['guard', toolCall?.name, args]),
      },
    });
    const { agent } = setup([toolCalls(via('invoice')), text('done')], {}, { middleware: [watch] });
    const { messages } = await agent.run('go');
    expect(seen).toEqual([
      ['guard', 'deferred_tool_call', { tool_name: 'invoice', arguments: { id: 1 } }],
      ['guard', 'invoice', { id: 1 }],
      ['before', 'invoice', 'invoice', { id: 1 }],
      ['wrap', 'invoice', { id: 1 }],
      ['after', 'invoice'],
    ]);
    expect(messages[2]).toMatchObject({ toolName: 'deferred_tool_call', toolCallId: 'call_1' });
  });

  it('is stopped by a guard that knows only the real tool', async () => {
    const guard = defineMiddleware({
      name: 'no-refunds',
      guard: {
        on: ['tool-args'],
        judge: ({ toolCall }) =>
          toolCall?.name === 'refund' ? { type: 'deny', reason: 'No refunds.' } : undefined,
      },
    });
    const { agent } = setup(
      [toolCalls(via('refund'), via('invoice', { id: 2 }, 'b')), text('done')],
      {},
      { middleware: [guard] },
    );
    expect(results((await agent.run('go')).messages)).toEqual(['No refunds.', 'invoice 2']);
  });

  it('runs what a redacting guard left of the arguments', async () => {
    const note = groupOf('notes', ['note'], (name) =>
      tool({
        name,
        description: '',
        input: z.object({ text: z.string() }),
        execute: ({ text: said }) => said,
      }),
    );
    const guard = defineMiddleware({
      name: 'redact',
      guard: {
        on: ['tool-args'],
        find: (said) => [...said.matchAll(/secret/g)].map(({ index }) => ({ start: index, end: index + 6 })),
      },
    });
    const { agent } = setup(
      [toolCalls(via('note', { text: 'a secret' })), text('done')],
      { groups: [note] },
      { middleware: [guard] },
    );
    const { messages } = await agent.run('go');
    expect(results(messages)).toEqual(['a [redacted]']);
    expect(JSON.stringify(messages)).not.toContain('secret');
  });

  it('is approved by the name of the real tool, and resumed by another process', async () => {
    const store = memoryStore();
    const script = [toolCalls(via('refund', { id: 5 })), text('done')];
    const middleware = [approval({ policy: { refund: ask(), '*': 'allow' } })];
    const first = setup(script, {}, { middleware, store });
    const suspended = await first.agent.session('s').run('go');
    expect(suspended.status).toBe('suspended');
    const [request] = suspended.pending;
    expect(request).toMatchObject({ toolName: 'refund' });

    const second = setup(
      [text('done')],
      {},
      { middleware: [approval({ policy: { refund: ask(), '*': 'allow' } })], store },
    );
    const resumed = await second.agent
      .session('s')
      .resume({ answers: { [request!.id]: { type: 'approve' } } });
    expect(resumed.status).toBe('done');
    expect(results(resumed.messages)).toEqual(['refund 5']);
    expect([first.group.loads, second.group.loads]).toEqual([1, 1]);
  });
});

describe('deferred-tools, inject', () => {
  const inject = { strategy: 'inject' } as const;

  it('shows loaded tools from the next request on', async () => {
    const { agent, model, group } = setup(
      [toolCalls(load('billing')), toolCalls({ name: 'refund', args: { id: 2 } }), text('done')],
      inject,
      {
        tools: [echo('own')],
      },
    );
    const { messages } = await agent.run('go');
    expect(results(messages)).toEqual([
      'Group "billing" is loaded. Now among your tools: invoice, refund.',
      'refund 2',
    ]);
    expect(model.requests.map(toolNames)).toEqual([
      ['own', 'load_tools'],
      ['own', 'load_tools', 'invoice', 'refund'],
      ['own', 'load_tools', 'invoice', 'refund'],
    ]);
    expect(new Set(model.requests.map(({ systemPrompt }) => systemPrompt)).size).toBe(1);
    // The same list, so that nothing is made anew for every turn.
    expect(model.requests[2]?.tools).toBe(model.requests[1]?.tools);
    expect(group.loads).toBe(1);
  });

  it('shows them in later runs, also in another process, and loads them there once', async () => {
    const store = memoryStore();
    const one = setup([toolCalls(load('billing')), text('done')], inject, { store });
    await one.agent.session('s').run('go');
    const two = setup([toolCalls({ name: 'invoice', args: { id: 4 } }), text('done')], inject, { store });
    expect(results((await two.agent.session('s').run('and?')).messages)).toEqual(['invoice 4']);
    expect(toolNames(two.model.requests[0])).toEqual(['load_tools', 'invoice', 'refund']);
    expect([one.group.loads, two.group.loads]).toEqual([1, 1]);
  });

  it.each(['another process', 'the same process'])(
    'goes on with a call of an injected tool that was suspended, in %s',
    async (where) => {
      const store = memoryStore();
      const script = [
        toolCalls(load('billing')),
        toolCalls({ name: 'refund', args: { id: 6 } }),
        text('done'),
      ];
      const options = () => ({ middleware: [approval({ policy: { refund: ask(), '*': 'allow' } })], store });
      const first = setup(script, inject, options());
      const { pending } = await first.agent.session('s').run('go');
      expect(pending).toHaveLength(1);
      const then = where === 'the same process' ? first : setup([text('done')], inject, options());
      const resumed = await then.agent
        .session('s')
        .resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
      expect(results(resumed.messages)).toContain('refund 6');
    },
  );

  const remove = defineMiddleware({
    name: 'remove',
    beforeModel(ctx) {
      ctx.tools = ctx.tools.filter(({ name }) => name !== 'refund');
    },
  });

  it('does not bring back a tool that a layer took out of the request', async () => {
    const script = [toolCalls(load('billing')), toolCalls({ name: 'refund', args: { id: 1 } }), text('done')];
    const { agent } = setup(script, inject, { middleware: [remove] });
    expect(results((await agent.run('go')).messages)[1]).toContain('There is no tool "refund".');
  });

  it.each(['another process', 'the same process'])(
    'does not bring it back either when its batch was suspended and resumed, in %s',
    async (where) => {
      const store = memoryStore();
      const calls = toolCalls(
        { name: 'refund', args: { id: 1 }, id: 'a' },
        { name: 'invoice', args: { id: 2 }, id: 'b' },
      );
      const policy = { invoice: ask(), '*': 'allow' } as const;
      const options = () => ({ middleware: [remove, approval({ policy })], store });
      const first = setup([toolCalls(load('billing')), calls, text('done')], inject, options());
      const { pending } = await first.agent.session('s').run('go');
      const then = where === 'the same process' ? first : setup([text('done')], inject, options());
      const answers = { [pending[0]!.id]: { type: 'approve' as const } };
      const given = results((await then.agent.session('s').resume({ answers })).messages);
      expect(given.at(-2)).toContain('There is no tool "refund".');
      expect(given.at(-1)).toBe('invoice 2');
    },
  );

  it('leaves out a group that cannot be loaded any more, says so, and tries again', async () => {
    const store = memoryStore();
    await setup([toolCalls(load('billing')), text('done')], inject, { store })
      .agent.session('s')
      .run('go');
    let tries = 0;
    const flaky: ToolGroup = {
      ...billing(),
      load: () => {
        if (++tries === 1) throw new Error('down');
        return [echo('invoice'), echo('refund')];
      },
    };
    const two = setup([toolCalls(load('nothing')), text('done')], { ...inject, groups: [flaky] }, { store });
    const { events, result } = await collect(two.agent.session('s').stream('and?'));
    expect(result?.status).toBe('done');
    expect(events).toContainEqual(
      expect.objectContaining({
        type: 'custom',
        name: 'deferred-tools',
        data: { group: 'billing', error: 'Group "billing" could not be loaded: down' },
      }),
    );
    expect(two.model.requests.map(toolNames)).toEqual([['load_tools'], ['load_tools', 'invoice', 'refund']]);
  });

  it('forgets groups that a later version of the program no longer has', async () => {
    const store = memoryStore();
    await setup([toolCalls(load('billing')), text('done')], inject, { store })
      .agent.session('s')
      .run('go');
    const two = setup([text('done')], { ...inject, groups: [groupOf('net', ['ping'])] }, { store });
    await two.agent.session('s').run('and?');
    expect(toolNames(two.model.requests[0])).toEqual(['load_tools']);
  });
});
