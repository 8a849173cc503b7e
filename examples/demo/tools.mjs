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
  // Running it twice does no harm, so `retry` may. It has to: in each run the service is busy twice. After two attempts
  // `retry` gives up, the model reads an error and calls the tool again.
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
  // Booking twice under the same key books one room, so it is safe to try again.
  idempotent: true,
  execute({ town, nights }, ctx) {
    bookings.set(ctx.idempotencyKey, { town, nights });
    return `a room in ${town} is booked for ${nights} nights`;
  },
});
