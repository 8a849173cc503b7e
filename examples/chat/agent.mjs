// The agent behind the chat: it knows three walks, books huts once somebody has agreed, and its model fails now and then.

import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Agent, tool } from 'allium';
import { approval } from 'allium/middleware/approval';
import { retry } from 'allium/middleware/retry';
import { fileStore } from 'allium/stores/file';
import { z } from 'zod';
import { demoModel } from './demo-model.mjs';

const walks = [
  { name: 'Lake loop', hours: 2, climb: 140, hut: 'Lakeside hut' },
  { name: 'Larch ridge', hours: 5, climb: 620, hut: 'Ridge hut' },
  { name: 'North summit', hours: 8, climb: 1310, hut: 'High camp' },
];

const findWalks = tool({
  name: 'find_walks',
  description: 'Finds walks nearby.',
  input: z.object({ hours: z.number().describe('At most so many hours.') }),
  async execute({ hours }) {
    await pause(700);
    return JSON.stringify(walks.filter((walk) => walk.hours <= hours));
  },
});

const bookHut = tool({
  name: 'book_hut',
  description: 'Books a bed in a hut. It costs money.',
  input: z.object({ hut: z.string(), nights: z.number().int().positive() }),
  async execute({ hut, nights }) {
    await pause(500);
    return JSON.stringify({ booked: hut, nights, code: 'LARCH-42' });
  },
});

export const agent = new Agent({
  name: 'guide',
  model: demoModel(), // yours: fromAiSdk(openai('gpt-…')) of @allium/ai-sdk, for example
  systemPrompt: 'You are a mountain guide. Be short and kind.',
  tools: [findWalks, bookHut],
  store: fileStore({ dir: fileURLToPath(new URL('.allium/sessions', import.meta.url)) }),
  limits: { turns: 8, timeoutMs: 120_000 },
  middleware: [
    retry({ minDelayMs: 400, maxDelayMs: 400 }),
    approval({ policy: { book_hut: 'ask', '*': 'allow' } }),
  ],
});
