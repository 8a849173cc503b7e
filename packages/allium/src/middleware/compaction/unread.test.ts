/** What the model has not read yet is not summarised. */
import { Agent, textOf, tool } from 'allium';
import { compaction } from 'allium/middleware/compaction';
import { todoList } from 'allium/middleware/todo-list';
import { scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

/** Four characters per token. */
const tokenCounter = (said: string) => Math.ceil(said.length / 4);
/** A model that does not say what it has read. */
const unreported = { usage: {} };
const compacting = (maxTokens: number) => {
  const summaryModel = scriptedModel(['SUMMARY'], { repeat: true });
  return { summaryModel, made: compaction({ summaryModel, maxTokens, tokenCounter }) };
};
const rolesOf = (messages: readonly { readonly role: string }[]) => messages.map(({ role }) => role);

describe('compaction leaves in', () => {
  const past = Array.from({ length: 12 }, (_, n) => `${n} ${'past '.repeat(40)}`);

  async function read(chars: number, maxTokens: number) {
    const { made, summaryModel } = compacting(maxTokens);
    const model = scriptedModel(
      [...past.map(() => 'ok'), toolCalls({ name: 'read' }), 'It says x.'],
      unreported,
    );
    const reading = tool({
      name: 'read',
      description: 'Reads.',
      input: z.object({}),
      async execute() {
        await session.steer('Also be brief.');
        return 'x'.repeat(chars);
      },
    });
    const session = new Agent({ model, middleware: [made], tools: [reading] }).session('s');
    for (const one of past) await session.run(one);
    await session.run('Read it.');
    return { last: model.requests.at(-1)!.messages, asked: summaryModel.requests };
  }

  it('a long result that somebody spoke after', async () => {
    const { last, asked } = await read(38_000, 9900);
    expect(asked).toHaveLength(1);
    expect(rolesOf(last).slice(-3)).toEqual(['assistant', 'tool', 'user']);
    expect(textOf(last.at(-2)!)).toHaveLength(38_000);
    expect(textOf(last.at(-1)!)).toBe('Also be brief.');
  });

  it('that result also when it alone is longer than a request should be', async () => {
    const { last } = await read(60_000, 9900);
    expect(rolesOf(last).slice(-3)).toEqual(['assistant', 'tool', 'user']);
    expect(textOf(last.at(-2)!)).toHaveLength(60_000);
  });

  it('all that the user sent together', async () => {
    const { made, summaryModel } = compacting(9900);
    const model = scriptedModel(['ok'], { repeat: true, ...unreported });
    const session = new Agent({ model, middleware: [made] }).session('s');
    for (const one of past) await session.run(one);
    await session.run(['d'.repeat(38_000), 'What does it say?']);
    expect(summaryModel.requests).toHaveLength(1);
    const texts = model.requests.at(-1)!.messages.map(textOf);
    expect(texts.slice(1)).toEqual(['d'.repeat(38_000), 'What does it say?']);
  });

  it('the question of the user when the list of todos stands behind it', async () => {
    const { made, summaryModel } = compacting(2000);
    const todos = [{ content: 'Look', status: 'in_progress' }];
    const model = scriptedModel(
      [
        toolCalls({ name: 'write_todos', args: { todos } }),
        toolCalls({ name: 'write_todos', args: { todos: [{ content: 'Look', status: 'completed' }] } }),
        'ok',
        'ok',
        'ok',
      ],
      unreported,
    );
    const session = new Agent({ model, middleware: [todoList(), made] }).session('s');
    await session.run('past '.repeat(400));
    await session.run('past '.repeat(400));
    await session.run(`Which one? ${'?'.repeat(4400)}`);
    expect(summaryModel.requests.length).toBeGreaterThan(0);
    const texts = model.requests.at(-1)!.messages.map(textOf);
    expect(texts.at(-2)).toContain('Which one?');
    expect(texts.at(-1)).toContain('Look');
  });
});

it('compaction of user messages that do not fit together keeps the last', async () => {
  const { made } = compacting(1000);
  const model = scriptedModel(['ok'], unreported);
  const sent = Array.from({ length: 8 }, (_, n) => `${n}`.repeat(2000));
  await new Agent({ model, middleware: [made] }).run(sent);
  const texts = model.requests[0]!.messages.map(textOf);
  expect(texts).toEqual([expect.stringContaining('SUMMARY'), sent[7]]);
});
