// Hono, on Node, Bun, Deno and Cloudflare: the handler as it is. Bun.serve({ fetch: app.fetch }), Deno.serve(app.fetch).

import { Hono } from 'hono';
import { handler } from './handler.mjs';

export const app = new Hono();
app.get('/', (c) => c.text('Hello.'));
app.all('/api/agent/*', (c) => handler(c.req.raw));

export default app;
