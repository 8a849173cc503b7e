import { Agent, type AgentEvent, memoryStore, type NewEntry, type Store, tool } from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });
const script = () => scriptedModel([toolCalls({ name: 'look', args: {} }), text('Done.')]);

/** A store that answers later, and notes what was written together. */
function noting(): { readonly store: Store; readonly appends: string[][] } {
  const inner = memoryStore();
  const appends: string[][] = [];
  const append = async (id: string, seq: number, entries: readonly NewEntry[]) => {
    appends.push(entries.map(({ type }) => type));
    return inner.append(id, seq, entries);
  };
  const store = new Proxy(inner, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (name === 'append') return append;
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
  return { store, appends };
}

describe('observers of one run', () => {
  it("get the events of that run only, in addition to the agent's observers", async () => {
    const all: string[] = [];
    const one: string[] = [];
    const agent = new Agent({
      model: scriptedModel([text('.')], { repeat: true }),
      observers: [({ runId }) => void all.push(runId)],
    });
    const first = await agent.run('Hi.', { observers: [({ runId }) => void one.push(runId)] });
    const second = await agent.run('Hi.');
    await agent.observersIdle();
    expect(new Set(one)).toEqual(new Set([first.runId]));
    expect(new Set(all)).toEqual(new Set([first.runId, second.runId]));
  });

  it('get the events of a resumed run, and so does an observer that is added later', async () => {
    const own: string[] = [];
    const later: string[] = [];
    const agent: Agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'watch', args: {} }), text('Done.')]),
      tools: [
        tool({
          name: 'watch',
          description: 'Adds an observer.',
          input: z.object({}),
          execute() {
            agent.observe(({ type }) => void later.push(type));
            return 'ok';
          },
        }),
      ],
    });
    await agent.run('Hi.', { observers: [({ type }) => void own.push(type)] });
    await agent.observersIdle();
    expect(own[0]).toBe('agent_start');
    expect(own.at(-1)).toBe('agent_end');
    expect(later.at(-1)).toBe('agent_end');
  });

  it('refuses anything but an observer', async () => {
    const agent = new Agent({ model: script() });
    await expect(agent.run('Hi.', { observers: ['me'] as never })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    });
  });
});

describe('early observers', () => {
  const run = async (early: boolean): Promise<{ appends: string[][]; types: string[] }> => {
    const { store, appends } = noting();
    const types: string[] = [];
    const onEvent = ({ type }: AgentEvent): void => void types.push(type);
    const agent = new Agent({ model: script(), tools: [look], store });
    await agent.session('s').run('Look.', { observers: [{ early, onEvent }] });
    return { appends, types };
  };

  it('do not make the run write the last result of a turn by itself', async () => {
    const early = await run(true);
    const usual = await run(false);
    expect(usual.appends.filter((types) => types.join() === 'tool_finished')).toHaveLength(1);
    expect(early.appends.filter((types) => types.join() === 'tool_finished')).toHaveLength(0);
    expect(early.appends.flat()).toEqual(usual.appends.flat());
    expect(early.types).toEqual(usual.types);
  });

  it('change nothing for others who watch', async () => {
    const { store, appends } = noting();
    const agent = new Agent({ model: script(), tools: [look], store, observers: [() => {}] });
    await agent.session('s').run('Look.', { observers: [{ early: true, onEvent: () => {} }] });
    expect(appends.filter((types) => types.join() === 'tool_finished')).toHaveLength(1);
  });
});
