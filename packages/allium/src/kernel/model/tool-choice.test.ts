import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Agent, defineMiddleware, type ModelSettings, memoryStore, tool } from '../../index.js';
import { failWith, scriptedModel, toolCalls } from '../../testing/index.js';

const look = tool({
  name: 'look',
  description: 'Looks.',
  input: z.object({}),
  execute: () => 'seen',
});

const layer = defineMiddleware({ name: 'layer', beforeModel() {} });

/** The choice each request of a run came with. */
async function choices(toolChoice: ModelSettings['toolChoice'], more: object = {}) {
  const model = scriptedModel([toolCalls({ name: 'look' }), toolCalls({ name: 'look' }), 'done']);
  await new Agent({ model, tools: [look], settings: { toolChoice, seed: 1 }, ...more }).run('look');
  for (const { settings } of model.requests) expect(settings.seed).toBe(1);
  return model.requests.map(({ settings }) => settings.toolChoice);
}

describe.each([
  ['without layers', []],
  ['with layers', [layer]],
])('a toolChoice of the agent, %s', (_, middleware) => {
  it.each(['required' as const, { tool: 'look' }])(
    'that demands a call holds for the first turn: %o',
    async (choice) => {
      expect(await choices(choice, { middleware })).toEqual([choice, undefined, undefined]);
    },
  );

  it.each(['auto' as const, 'none' as const])(
    'that demands no call holds for all turns: %s',
    async (choice) => {
      expect(await choices(choice, { middleware })).toEqual([choice, choice, choice]);
    },
  );

  it('holds for all turns if asked to', async () => {
    const all = { middleware, toolChoiceTurns: 'all' };
    expect(await choices('required', all)).toEqual(['required', 'required', 'required']);
  });
});

it('each run of a session begins with the choice, and each attempt at its first turn', async () => {
  const retry = defineMiddleware({ name: 'retry', onError: () => 'retry' });
  const model = scriptedModel([failWith(new Error('busy')), toolCalls({ name: 'look' }), 'a', 'b']);
  const settings = { toolChoice: 'required' } as const;
  const session = new Agent({ model, tools: [look], settings, middleware: [retry] }).session('s');
  await session.run('one');
  await session.run('two');
  const asked = model.requests.map((request) => request.settings.toolChoice);
  expect(asked).toEqual(['required', 'required', undefined, 'required']);
});

it('a run that is resumed is past its first turn', async () => {
  const asks = tool({
    name: 'asks',
    description: 'Asks.',
    input: z.object({}),
    execute: async (_, ctx) => JSON.stringify(await ctx.suspend({ title: 'Well?' })),
  });
  const store = memoryStore();
  const settings = { toolChoice: 'required' } as const;
  const first = new Agent({
    model: scriptedModel([toolCalls({ name: 'asks' })]),
    tools: [asks],
    settings,
    store,
  });
  const { pending } = await first.session('s').run('go');
  const model = scriptedModel(['done']);
  const second = new Agent({ model, tools: [asks], settings, store });
  await second.session('s').resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
  expect(model.requests[0]!.settings).toEqual({});
});

it('what a layer sets is what the call uses, in every turn', async () => {
  const forces = defineMiddleware({
    name: 'forces',
    beforeModel(ctx) {
      ctx.settings = { ...ctx.settings, toolChoice: 'required' };
    },
  });
  expect(await choices('auto', { middleware: [forces] })).toEqual(['required', 'required', 'required']);
});

it('anything but first and all is refused', () => {
  const make = () => new Agent({ model: scriptedModel([]), toolChoiceTurns: 'every' as 'all' });
  expect(make).toThrow(/`toolChoiceTurns`.*got "every"/);
});
