// Express: a middleware on a path. It works whether or not `express.json()` has read the body before.

import { pathToFileURL } from 'node:url';
import { toNodeListener } from 'allium/http';
import express from 'express';
import { handler } from './handler.mjs';

export const app = express();
app.get('/', (_, response) => response.send('Hello.'));
app.use(express.json());
app.use('/api/agent', toNodeListener(handler));

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  app.listen(3000, () => console.log('http://127.0.0.1:3000/api/agent'));
