// Cloudflare-style workers. Bundle it with what it imports, as `wrangler` does. `waitUntil` of the third argument keeps the
// worker alive for a run that continues without its reader.

import { handler } from './handler.mjs';

export default {
  fetch: (request, _env, context) => handler(request, context),
};
