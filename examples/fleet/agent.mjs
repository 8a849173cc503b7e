// The agent of the example: it looks something up, which takes a while, and answers. No key, no network.

import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, textOf, tool } from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { z } from 'zod';

const look = tool({
  name: 'look',
  description: 'Looks a parcel up.',
  input: z.object({ parcel: z.string() }),
  idempotent: true,
  async execute({ parcel }) {
    await sleep(500);
    return `Parcel ${parcel} is in Bergen.`;
  },
});

const model = scriptedModel(
  [
    ({ messages }) => {
      const last = messages.at(-1);
      if (last?.role === 'tool') return text(textOf(last));
      const [parcel = '1'] = /\d+/.exec(last ? textOf(last) : '') ?? [];
      return toolCalls({ name: 'look', args: { parcel } });
    },
  ],
  { repeat: true },
);

export const support = new Agent({ name: 'support', model, tools: [look] });
