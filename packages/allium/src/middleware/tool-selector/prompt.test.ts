import { Agent, tool } from 'allium';
import { toolSelector } from 'allium/middleware/tool-selector';
import { scriptedModel, text } from 'allium/testing';
import { expect, it } from 'vitest';
import { z } from 'zod';

it('the picking model gets your prompt, and how to answer', async () => {
  const picker = scriptedModel(['["a"]']);
  const tools = ['a', 'b', 'c'].map((name) =>
    tool({ name, description: name, input: z.object({}), execute: () => name }),
  );
  const model = scriptedModel([text('done')]);
  const middleware = [toolSelector({ model: picker, maxTools: 1, prompt: 'Choose for a lawyer.' })];
  await new Agent({ model, tools, middleware }).run('go');
  expect(picker.requests[0]!.systemPrompt).toMatch(/^Choose for a lawyer\.\nAnswer with a JSON list/);
  expect(model.requests[0]!.tools.map(({ name }) => name)).toEqual(['a']);
  expect(() => toolSelector({ model: picker, prompt: '' })).toThrow('Expected `prompt` to be non-empty text');
});
