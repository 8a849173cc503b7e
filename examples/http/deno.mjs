// Deno: `deno run --allow-net --allow-env --allow-read deno.mjs`. The handler as it is.

import { handler } from './handler.mjs';

const port = Number(Deno.env.get('PORT') ?? 3000);
Deno.serve({ port, onListen: ({ port }) => console.log(`http://127.0.0.1:${port}/api/agent`) }, (request) =>
  handler(request),
);
