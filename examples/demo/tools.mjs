// The tools of the demo: everything this module exports.

import { tool } from 'allium';
import { z } from 'zod';

/** How often each run has asked for the weather. */
const asked = new Map();
const bookings = new Map();

export const forecast = tool({
  name: 'forecast',
  description: 'The weather of the next days in a town.',
  input: z.object({ town: z.string(), days: z.number().int().positive() }),
  // It may be run twice, so it may be tried again. And it has to be: a run finds the service busy two times. The chain
  // tries twice and gives up; so the model reads an error, and calls it again.
  idempotent: true,
  execute({ town, days }, { runId }) {
    const times = (asked.get(runId) ?? 0) + 1;
    asked.set(runId, times);
    if (times <= 2) throw Object.assign(new Error('the weather service is busy'), { status: 503 });
    return `${days} days of rain in ${town}, nine to twelve degrees`;
  },
});

export const findGuide = tool({
  name: 'find_guide',
  description: 'Someone who lives in a town and shows people around.',
  input: z.object({ town: z.string() }),
  idempotent: true,
  execute: ({ town }) => `Ingrid shows people around ${town}, write to ingrid@${town.toLowerCase()}.example`,
});

export const bookRoom = tool({
  name: 'book_room',
  description: 'Books a room.',
  input: z.object({ town: z.string(), nights: z.number().int().positive() }),
  // Whoever books twice under the same key has one room: that makes it safe to try again.
  idempotent: true,
  execute({ town, nights }, ctx) {
    bookings.set(ctx.idempotencyKey, { town, nights });
    return `a room in ${town} is booked for ${nights} nights`;
  },
});
