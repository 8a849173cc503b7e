import { Agent, type Tool } from 'allium';
import { deferredTools, type ToolGroup } from 'allium/middleware/deferred-tools';
import { collect, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';

import {
  billing,
  echo,
  groupOf,
  load,
  results,
  setup,
  via,
} from '../../../../../test/deferred-tools-setup.js';

describe('deferred-tools, loading', () => {
  it('loads once for calls that come at the same time', async () => {
    const { agent, group } = setup([
      toolCalls(load('billing'), via('invoice', { id: 1 }, 'b'), via('refund', { id: 2 }, 'c'), {
        ...load('billing'),
        id: 'd',
      }),
      text('done'),
    ]);
    const { messages } = await agent.run('go');
    expect(results(messages).slice(1, 3)).toEqual(['invoice 1', 'refund 2']);
    expect(group.loads).toBe(1);
  });

  it('loads once per session, for each tenant and session its own', async () => {
    const asked: unknown[] = [];
    const group: ToolGroup = {
      ...billing(),
      load: (session) => [echo('invoice'), echo('refund')].filter(() => asked.push(session)),
    };
    const model = scriptedModel([toolCalls(via('invoice')), text('done')], { repeat: true });
    const agent = new Agent({ model, middleware: [deferredTools({ groups: [group] })] });
    for (const [id, tenant] of [['a'], ['a'], ['b', 't'], ['c', 'u'], ['b', 't']] as const)
      await agent.session(id).run('go', { ...(tenant && { tenant }) });
    expect(new Set(asked.map((one) => JSON.stringify(one)))).toEqual(
      new Set(['{"sessionId":"a"}', '{"sessionId":"b","tenant":"t"}', '{"sessionId":"c","tenant":"u"}']),
    );
    expect(asked).toHaveLength(6);
  });

  it('loads again for a session that was forgotten', async () => {
    const group = billing();
    const model = scriptedModel([toolCalls(via('invoice')), text('done')], { repeat: true });
    const agent = new Agent({ model, middleware: [deferredTools({ groups: [group], maxSessions: 1 })] });
    for (const id of ['a', 'a', 'b', 'a']) await agent.session(id).run('go');
    expect(group.loads).toBe(3);
  });

  it('does not remember a failure', async () => {
    let tries = 0;
    const group: ToolGroup = {
      ...billing(),
      load: async () => {
        if (++tries < 3) throw new Error('no connection');
        return [echo('invoice'), echo('refund')];
      },
    };
    const { agent } = setup(
      [toolCalls(load('billing')), toolCalls(via('invoice')), toolCalls(via('invoice')), text('done')],
      { groups: [group] },
    );
    const { messages, status } = await agent.run('go');
    expect(status).toBe('done');
    expect(results(messages)).toEqual([
      'Group "billing" could not be loaded: no connection',
      '"deferred_tool_call" was not completed: middleware "deferred-tools" failed: Group "billing" could not be loaded: no connection',
      'invoice 1',
    ]);
  });

  it.each([
    [[echo('invoice')], 'it lacks refund'],
    [[echo('invoice'), echo('refund'), echo('more')], 'it also has more'],
    [[echo('invoice'), echo('more')], 'it lacks refund, and it also has more'],
    ['tools', 'to be a list of tools, got "tools"'],
  ])('refuses a loaded group that differs from its declaration %#', async (tools, message) => {
    const group = { ...billing(), load: () => tools } as unknown as ToolGroup;
    const { agent } = setup([toolCalls(load('billing')), text('done')], { groups: [group] });
    const { messages } = await agent.run('go');
    expect(results(messages)[0]).toContain(message);
    expect(messages[2]).toMatchObject({ isError: true });
  });

  it('does not hold up an abort, nor lose the load for others', async () => {
    let finish: (tools: Tool[]) => void = () => {};
    const group: ToolGroup = {
      ...billing(),
      load: () => {
        started++;
        return new Promise((resolve) => {
          finish = resolve;
        });
      },
    };
    let started = 0;
    const model = scriptedModel([toolCalls(load('billing')), toolCalls(via('invoice')), text('done')]);
    const agent = new Agent({ model, middleware: [deferredTools({ groups: [group] })] });
    const abort = new AbortController();
    const run = agent
      .session('s')
      .run('go', { signal: abort.signal })
      .catch((error) => error);
    while (started === 0) await new Promise((resolve) => setImmediate(resolve));
    abort.abort();
    expect(await run).toMatchObject({ code: 'ABORTED' });
    finish([echo('invoice'), echo('refund')]);
    expect(results((await agent.session('s').run('again')).messages)).toEqual(['invoice 1']);
    expect(started).toBe(1);
  });

  it('remembers what is loaded in a cell of the session', async () => {
    const { agent } = setup([toolCalls(load('billing')), toolCalls(via('invoice')), text('done')]);
    const { events } = await collect(agent.stream('go'));
    const changes = events.filter(({ type }) => type === 'state_change');
    expect(changes).toMatchObject([{ cell: 'deferred-tools:loaded', value: ['billing'] }]);
  });
});

describe('deferred-tools with 500 tools in 20 groups', () => {
  const groups = Array.from({ length: 20 }, (_, g) =>
    groupOf(
      `group_${g}`,
      Array.from({ length: 25 }, (_, t) => `group_${g}_tool_${t}`),
    ),
  );
  const size = ({ systemPrompt, tools }: { systemPrompt: string; tools: readonly object[] }) =>
    systemPrompt.length + JSON.stringify(tools).length;

  it.each(['dispatch', 'inject'] as const)('needs only a small part of the tokens (%s)', async (strategy) => {
    const all = scriptedModel([text('done')]);
    await new Agent({
      model: all,
      tools: groups.flatMap(({ toolNames: names }) => names.map((name) => echo(name))),
    }).run('go');
    const model = scriptedModel([toolCalls(load('group_7')), text('done')]);
    const { messages } = await new Agent({ model, middleware: [deferredTools({ groups, strategy })] }).run(
      'go',
    );
    expect(messages[2]).toMatchObject({ isError: false });
    const before = size(all.requests[0]!);
    expect(size(model.requests[0]!)).toBeLessThan(before / 5);
    expect(size(model.requests[1]!)).toBeLessThan(before / 4);
    expect(groups.map(({ loads }) => loads > 0)).toEqual(groups.map(({ id }) => id === 'group_7'));
  });
});

describe('deferredTools()', () => {
  it.each([
    [{}, 'Expected `groups` to be a list of groups, got undefined.'],
    [
      { groups: [5] },
      'Expected `groups[0]` to be a group { id, title, description, toolNames, load }, got 5.',
    ],
    [
      { groups: [{ ...billing(), id: 'a b' }] },
      'Expected `groups[0].id` to be 1 to 64 letters, digits, "_", "-" or ".", got "a b".',
    ],
    [{ groups: [{ ...billing(), title: ' ' }] }, 'Expected `groups[0].title` to be non-empty text, got " ".'],
    [
      { groups: [{ ...billing(), toolNames: [] }] },
      'Expected `groups[0].toolNames` to be a non-empty list of tool names, got [].',
    ],
    [
      { groups: [{ ...billing(), toolNames: ['a b'] }] },
      'Expected `groups[0].toolNames` to be a non-empty list of tool names',
    ],
    [{ groups: [{ ...billing(), load: 5 }] }, 'Expected `groups[0].load` to be a function, got 5.'],
    [{ groups: [{ ...billing(), tools: [] }] }, 'Unknown option `tools` of groups[0].'],
    [
      { groups: [billing(), billing()] },
      'Expected `groups[1].id` to be an id that no other group has, got "billing".',
    ],
    [
      { groups: [billing(), groupOf('other', ['invoice'])] },
      'Tool "invoice" of deferred group "other" is also a tool of group "billing". Rename one of them.',
    ],
    [
      { groups: [groupOf('other', ['load_tools'])] },
      'Tool "load_tools" of deferred group "other" is also a tool of deferredTools() itself.',
    ],
    [{ groups: [], strategy: 'lazy' }, "Expected `strategy` to be 'dispatch' or 'inject', got \"lazy\"."],
    [{ groups: [], maxSessions: 0 }, 'Expected `maxSessions` to be an integer ≥ 1, got 0.'],
    [{ groups: [], group: 1 }, 'Unknown option `group` of deferredTools(). Did you mean `groups`?'],
  ])('refuses options %#', (options, message) => {
    expect(() => deferredTools(options as never)).toThrow(message);
  });

  it('refuses tools that the agent has under the same name', async () => {
    const { agent } = setup([text('done')], {}, { tools: [echo('invoice')] });
    await expect(agent.run('go')).rejects.toThrow(
      'Tool "invoice" of deferred group "billing" is also a tool of the agent.',
    );
  });
});
