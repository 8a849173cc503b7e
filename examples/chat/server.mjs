// Serves the page and the agent. `npm start` builds the page first.

import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { serve, toNodeListener } from 'allium/http';
import { agent } from './agent.mjs';

const api = toNodeListener(
  serve({
    agents: agent,
    basePath: '/api',
    // Everybody is the same user here. Your server looks at a cookie or a token instead.
    authorize: () => ({ tenant: 'demo' }),
    show: { tools: true },
  }),
);

/** @type {Record<string, [string, string]>} */
const files = {
  '/': ['src/index.html', 'text/html; charset=utf-8'],
  '/style.css': ['src/style.css', 'text/css; charset=utf-8'],
  '/app.js': ['dist/app.js', 'text/javascript; charset=utf-8'],
};

export const server = createServer(async (request, response) => {
  const { pathname } = new URL(request.url ?? '/', 'http://localhost');
  if (pathname.startsWith('/api/')) return api(request, response);
  const found = files[pathname];
  if (!found) {
    response.statusCode = 404;
    return response.end();
  }
  const [file, type] = found;
  response.setHeader('content-type', type);
  response.end(await readFile(new URL(file, import.meta.url)));
});

const port = Number(process.env.PORT ?? 3000);
server.listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}`));
