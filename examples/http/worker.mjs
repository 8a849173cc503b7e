// Cloudflare-style workers: put together with what it imports, as `wrangler` does. The third argument has `waitUntil`, which
// keeps the worker alive while a detached run goes on.

import { handler } from './handler.mjs';

export default {
  fetch: (request, _env, context) => handler(request, context),
};
