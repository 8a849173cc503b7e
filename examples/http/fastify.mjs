// Fastify: a route that hands its raw request over. Fastify has parsed the body, so it is passed on.

import { pathToFileURL } from 'node:url';
import { toNodeListener } from 'allium/http';
import fastify from 'fastify';
import { handler } from './handler.mjs';

const listener = toNodeListener(handler);

export const app = fastify();
app.get('/', () => 'Hello.');
app.all('/api/agent/*', (request, reply) => {
  reply.hijack();
  return listener(Object.assign(request.raw, { body: request.body }), reply.raw);
});

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await app.listen({ port: 3000 });
  console.log('http://127.0.0.1:3000/api/agent');
}
