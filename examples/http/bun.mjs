// Bun: `bun bun.mjs`. The handler as it is.

import { handler } from './handler.mjs';

const server = Bun.serve({
  port: Number(process.env.PORT ?? 3000),
  // Seconds. Bun would cut a stream that is silent for 10; a comment comes every 15 (`heartbeatMs`).
  idleTimeout: 60,
  fetch: (request) => handler(request),
});
console.log(`http://127.0.0.1:${server.port}/api/agent`);
