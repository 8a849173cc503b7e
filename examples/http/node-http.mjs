// `node:http`: a listener.

import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';
import { toNodeListener } from 'allium/http';
import { handler } from './handler.mjs';

export const server = createServer(toNodeListener(handler));

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  server.listen(3000, () => console.log('http://127.0.0.1:3000/api/agent'));
