import { Agent, textOf, tool, toolOutput } from 'allium';
import { type ToolEmulatorOptions, toolEmulator } from 'allium/middleware/tool-emulator';
import { collect, failWith, hang, scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

function setup(options: Partial<ToolEmulatorOptions> = {}, ids = ['a']) {
  let runs = 0;
  const weather = tool({
    name: 'weather',
    description: 'The weather of a city.',
    input: z.object({ city: z.string() }),
    execute: () => `real ${++runs}`,
  });
  const player = scriptedModel(
    [({ messages }) => `played ${/"city":"(\w+)"/.exec(textOf(messages[0]!))?.[1]}`],
    {
      repeat: true,
    },
  );
  const step = toolCalls(...ids.map((id) => ({ name: 'weather', args: { city: id }, id })));
  const model = scriptedModel([step, text('done')], { repeat: true });
  const middleware = [toolEmulator({ model: player, ...options })];
  return { agent: new Agent({ model, tools: [weather], middleware }), weather, player, runs: () => runs };
}

const results = (messages: readonly { role: string }[]) =>
  messages.filter(({ role }) => role === 'tool').map((message) => textOf(message as never));

const player = () => scriptedModel(['made up'], { repeat: true });

testMiddleware(() => toolEmulator({ model: player(), tools: [] }), {
  name: 'tool-emulator that plays nothing',
  describe,
  it,
});
testMiddleware(() => toolEmulator({ model: player(), tools: ['kit_add', 'kit_slow'] }), {
  name: 'tool-emulator',
  neutral: () => toolEmulator({ model: player(), tools: [] }),
  describe,
  it,
});

describe('tool-emulator', () => {
  it('emulates every tool by default, and runs none', async () => {
    const { agent, player: asked, runs } = setup({}, ['a', 'b']);
    const { messages } = await agent.run('go');
    expect(results(messages)).toEqual(['played a', 'played b']);
    expect(runs()).toBe(0);
    const [request] = asked.requests;
    expect(request?.systemPrompt).toContain('You play a tool');
    expect(textOf(request!.messages[0]!)).toContain('Description: The weather of a city.');
    expect(textOf(request!.messages[0]!)).toContain('"required":["city"]');
    expect(request?.tools).toEqual([]);
  });

  it('asks the model of the agent where none is given, and says what the tool returns', async () => {
    const weather = tool({
      name: 'weather',
      description: 'The weather.',
      input: z.object({}),
      output: z.object({ degrees: z.number() }),
      execute: () => Promise.reject(new Error('real')),
    });
    const model = scriptedModel([toolCalls({ name: 'weather', id: 'w' }), '{"degrees":21}', text('done')]);
    const agent = new Agent({ model, tools: [weather], middleware: [toolEmulator()] });
    const { messages } = await agent.run('go');
    expect(toolOutput(weather, messages[2]!)).toEqual({ degrees: 21 });
    expect(textOf(model.requests[1]!.messages[0]!)).toContain('"degrees":{"type":"number"}');
  });

  it('plays none with an empty list', async () => {
    const { agent, player: asked } = setup({ tools: [] });
    expect(results((await agent.run('go')).messages)).toEqual(['real 1']);
    expect(asked.requests).toHaveLength(0);
  });

  it('plays the tools it is told to, by name or as they are', async () => {
    const { weather } = setup();
    expect(results((await setup({ tools: ['weather'] }).agent.run('go')).messages)).toEqual(['played a']);
    expect(results((await setup({ tools: [weather] }).agent.run('go')).messages)).toEqual(['played a']);
    expect(results((await setup({ tools: ['other'] }).agent.run('go')).messages)).toEqual(['real 1']);
  });

  it('counts what it spends', async () => {
    expect((await setup().agent.run('go')).usage.totalTokens).toBe(45);
  });

  it('lists the model it calls', () => {
    const model = player();
    expect([...toolEmulator({ model }).extraLlmCalls!()]).toEqual([model]);
  });

  it('fails the call if the emulating model fails', async () => {
    const { agent } = setup({ model: scriptedModel([failWith(new Error('no idea'))]) });
    const result = await agent.run('go');
    expect(results(result.messages)).toEqual(['"weather" failed: no idea']);
    expect(result.status).toBe('done');
  });

  it('stops playing when the run is aborted', async () => {
    const slow = scriptedModel([hang('Sun')]);
    const { agent } = setup({ model: slow });
    const abort = new AbortController();
    const run = agent.run('go', { signal: abort.signal }).catch((error) => error);
    while (slow.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    abort.abort();
    expect(await run).toMatchObject({ code: 'ABORTED' });
    expect(slow.aborted).toBe(1);
  });

  it('serves 100 concurrent runs, and the outer of two plays', async () => {
    const { agent } = setup({}, ['a', 'b']);
    const all = await Promise.all(Array.from({ length: 100 }, () => agent.session(agent.newId()).run('go')));
    const texts = new Set(
      all.filter(({ turns }) => turns === 2).flatMap(({ messages }) => results(messages)),
    );
    expect(texts).toEqual(new Set(['played a', 'played b']));
    const [outer, inner] = [scriptedModel(['outer']), scriptedModel([])];
    const { weather } = setup();
    const both = new Agent({
      model: scriptedModel([toolCalls({ name: 'weather', args: { city: 'a' } }), text('done')]),
      tools: [weather],
      middleware: [toolEmulator({ model: outer }), toolEmulator({ model: inner })],
    });
    expect(results((await both.run('go')).messages)).toEqual(['outer']);
  });

  it('does the same when the run is streamed, and shows nothing of the player', async () => {
    const { result, shown } = await collect(setup().agent.stream('go'));
    expect(results(result!.messages)).toEqual(['played a']);
    expect([...shown.values()].join()).not.toContain('played');
  });

  it.each([
    [{ model: player(), tools: 'all' }, 'Expected `tools` to be a list of tools or their names, got "all".'],
    [{ model: player(), tools: null }, 'Expected `tools` to be a list of tools or their names, got null.'],
    [{ model: player(), tools: '' }, 'Expected `tools` to be a list of tools or their names, got "".'],
    [{ model: player(), tools: [5] }, 'Expected `tools` to be a list of tools or their names, got [5].'],
    [{ model: player(), tool: [] }, 'Unknown option `tool` of toolEmulator(). Did you mean `tools`?'],
  ])('refuses options %#', (options, message) => {
    expect(() => toolEmulator(options as never)).toThrow(message);
  });
});
