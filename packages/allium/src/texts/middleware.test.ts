/** Middleware that shorten texts part no character, wherever the cut falls. */
import { Agent, type Middleware, type RunOptions, type RunResult, tool } from 'allium';
import { goal } from 'allium/middleware/goal';
import { type MemoryItem, memoryRecall } from 'allium/middleware/memory-recall';
import { subagents } from 'allium/middleware/subagents';
import { toolSelector } from 'allium/middleware/tool-selector';
import { type ScriptedModel, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

/** Half of these begin at an odd place, so one of the two is parted by any careless cut. */
const emojis = ['🙂'.repeat(3000), `x${'🙂'.repeat(3000)}x`];
const noted = (text: string): MemoryItem => ({ id: 'n', text, at: 1 });

interface Case {
  readonly middleware: Middleware;
  readonly model?: ScriptedModel;
  /** What the middleware sent to other models, or kept. */
  readonly seen: (result: RunResult) => unknown;
  readonly options?: RunOptions;
}

const cases: Record<string, (said: string) => Case> = {
  goal: () => {
    const evaluator = scriptedModel(['{"achieved": true, "reason": ""}']);
    return { middleware: goal({ evaluator }), options: { goal: 'g' }, seen: () => evaluator.requests };
  },
  'goal without a verdict': (said) => {
    const evaluator = scriptedModel([said]);
    const made = goal({ evaluator });
    return { middleware: made, options: { goal: 'g' }, seen: (result) => made.outcomeOf(result)!.reason };
  },
  toolSelector: () => {
    const picker = scriptedModel(['["a"]']);
    return {
      middleware: toolSelector({ model: picker, maxTools: 1 }),
      seen: () => picker.requests,
    };
  },
  memoryRecall: (said) => {
    const saved: unknown[] = [];
    const memory = {
      recall: (query: string) => {
        saved.push(query);
        return [noted(said)];
      },
      save: (items: readonly MemoryItem[]) => void saved.push(items),
    };
    return { middleware: memoryRecall({ memory }), seen: () => saved };
  },
  subagents: (said) => ({
    middleware: subagents({ defaultModel: scriptedModel([said]) }),
    model: scriptedModel([
      toolCalls({
        name: 'subagent',
        args: { name: 'n', role: 'r', task: 't', prompt: 'p', subagent_type: 'general-purpose' },
      }),
      'done',
    ]),
    seen: () => undefined,
  }),
};

describe('texts that are cut', () => {
  it.each(Object.entries(cases))('by %s', async (_, make) => {
    for (const said of emojis) {
      const { middleware, model = scriptedModel([said]), seen, options = {} } = make(said);
      const tools = ['a', 'b'].map((name) =>
        tool({ name, description: said, input: z.object({}), execute: () => '' }),
      );
      const result = await new Agent({ model, tools, middleware: [middleware] }).run(said, options);
      const all = [model.requests.map(({ messages }) => messages), result.messages, seen(result)];
      // Half of a character is written as an escape.
      expect(JSON.stringify(all)).not.toMatch(/\\+ud[89a-f]/i);
    }
  });
});
