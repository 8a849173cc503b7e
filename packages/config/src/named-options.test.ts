// Options that are models, tools or middleware are written by name, wherever they are in the options.

import { defineMiddleware, type Model, type ToolContext, textOf, tool } from 'allium';
import { registerMiddleware, registerModel, registerTool, resolveMiddleware } from 'allium/registry';
import { scriptedModel, toolCalls } from 'allium/testing';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { failing, make } from '../test/agents.js';

const chain = (name: string, options: string) =>
  `[allium]\nmodel = "offline"\n[allium.middleware]\nchain = ["${name}"]\n[allium.plugins.${name}]\n${options}`;

it.each([
  ['compaction', 'summaryModel = "offline"\nmaxTokens = 1000'],
  ['goal', 'evaluator = { use = "offline" }'],
  ['tool-selector', 'model = "offline"'],
  ['tool-emulator', 'model = "offline"'],
  ['fallback', 'models = ["offline"]'],
  ['subagents', 'defaultModel = "offline"'],
  ['llm-judge', 'model = "offline"\npolicy = "Be kind."'],
  ['guardrail', 'models = ["offline"]\ncheck = { import = "./check.mjs" }'],
])('%s takes a model by name', async (name, options) => {
  const { warnings } = await make(chain(name, options), { 'check.mjs': 'export default () => [];' });
  expect(warnings).toEqual([]);
});

it('sub-agents are described in a file with models, tools and middleware by name', async () => {
  const answer = (text: string) => [toolCalls({ name: 'look' }), text];
  const model: Model = scriptedModel(answer('It is red.'));
  const args = { name: 'Ann', task: 'Look.', prompt: 'Which colour?', subagent_type: 'reader' };
  const seen: string[] = [];
  const undo = [
    registerModel('small', () => model),
    registerModel('large', () => scriptedModel([toolCalls({ name: 'subagent', args }), 'Red.'])),
    registerTool(
      'look',
      tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'red' }),
    ),
    registerMiddleware('seen', ({ as }: { as: string }) =>
      defineMiddleware({
        name: 'seen',
        beforeTool: (ctx: ToolContext) => void seen.push(`${as} ${ctx.toolCall.name}`),
      }),
    ),
  ];
  const { agent, warnings } = await make(
    `
    [allium]
    model = "large"
    [allium.middleware]
    chain = ["subagents"]
    [allium.plugins.subagents]
    sharedTools = ["look", "./more.mjs"]
    inheritMiddleware = ["seen"]
    [allium.plugins.subagents.agents.reader]
    description = "Reads."
    systemPrompt = "Read."
    model = "small"
    middleware = [{ use = "retry", on = "tool" }]
    [allium.plugins.seen]
    as = "saw"`,
    { 'more.mjs': 'export default [];' },
  );
  const { messages, text } = await agent.run('Which colour is it?');
  expect([textOf(messages[2]!), text, seen, warnings]).toEqual(['It is red.', 'Red.', ['saw look'], []]);
  for (const one of undo) one();
});

it('a name that means nothing is an error at its place', async () => {
  const reader =
    '[allium.plugins.subagents.agents.reader]\ndescription = "r"\nsystemPrompt = "s"\nmodel = "offlin"';
  expect(await failing(chain('subagents', reader))).toMatchObject({
    ...{ code: 'UNKNOWN_NAME', key: 'allium.plugins.subagents.agents.reader.model', line: 9 },
    message: expect.stringContaining('Did you mean "offline"?'),
  });
  expect(
    await failing(chain('subagents', 'inheritMiddleware = [{ use = "retry", attempts = 0 }]')),
  ).toMatchObject({
    ...{ code: 'INVALID_OPTION', key: 'allium.plugins.subagents.inheritMiddleware[0]' },
    message: expect.stringContaining('Expected `attempts` to be an integer from 1 to 100, got 0.'),
  });
});

it('resolveMiddleware takes names as well', async () => {
  const made = await resolveMiddleware('compaction', { summaryModel: 'offline', maxTokens: 1000 });
  expect([...made.extraLlmCalls!()].map(({ id }) => id)).toEqual(['offline']);
});

it.each([
  ['memory-recall', 'memory = "memory"'],
  ['memory-recall', 'memory = { path = "memory.db" }'],
  ['tool-result-limit', 'spill = { dir = "spilled" }'],
  ['skills', 'dir = "skills"'],
])('%s takes %s, relative to the file', async (name, options) => {
  const files = { 'skills/review/SKILL.md': '---\nname: review\ndescription: How.\n---\nLook.' };
  const { agent } = await make(chain(name, options), files);
  expect((await agent.run('Hello.')).status).toBe('done');
});

it('says what a file may write where it cannot hold the thing', async () => {
  expect((await failing(chain('memory-recall', 'memory = "local"'))).message).toContain(
    'Expected `memory` to be "memory", { path } or an object with recall(), save(), got "local".',
  );
  expect((await failing(chain('idempotency', 'store = "redis"'))).message).toContain(
    'Expected `store` to be "memory" or an object with get(), set(), delete(), got "redis".',
  );
});

it("a module's function makes what its options name", async () => {
  const mine = `export default async ({ judge }, { make }) => {
    const model = await make('model', judge);
    return { name: 'mine', transformSystemPrompt: (prompt) => prompt + ' ' + model.id };
  };`;
  const toml =
    '[allium]\nmodel = "offline"\n[allium.middleware]\nchain = [{ use = "./mine.mjs", judge = "offline" }]';
  const { agent } = await make(toml, { 'mine.mjs': mine });
  let seen = '';
  const watch = defineMiddleware({
    name: 'watch',
    beforeModel(ctx) {
      seen = ctx.systemPrompt;
    },
  });
  await agent.run('Hello.', { middleware: [watch] });
  expect(seen).toBe(' offline');
});
