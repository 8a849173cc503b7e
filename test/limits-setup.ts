/** What the tests of limits begin with. */
import { Agent, type AgentOptions, tool } from 'allium';
import { type Script, scriptedModel, toolCalls } from 'allium/testing';
import { z } from 'zod';

export const input = z.object({});
export const free = tool({ name: 'free', description: '', input, execute: () => 'free' });
export const call = (count = 1) =>
  toolCalls(...Array.from({ length: count }, (_, n) => ({ name: 'free', id: `c${n}` })));
export const price = { input: 1, output: 2 };
export const usage = (inputTokens: number, outputTokens: number) => ({ inputTokens, outputTokens });
export const agent = (script: readonly Script[], options: Partial<AgentOptions> = {}) =>
  new Agent({ model: scriptedModel(script, { price }), tools: [free], ...options });
