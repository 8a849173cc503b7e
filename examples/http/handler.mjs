// The agent and its handler, which all of these servers share.

import { Agent, tool } from 'allium';
import { serve } from 'allium/http';
import { offlineModel } from 'allium/models/offline';
import { memoryStore } from 'allium/stores/memory';
import { z } from 'zod';

const forecast = tool({
  name: 'forecast',
  description: 'The weather forecast for a city.',
  input: z.object({ city: z.string() }),
  execute: ({ city }) => `${city}: rain, then sun.`,
});

export const agent = new Agent({
  name: 'weather',
  model: offlineModel(), // yours
  tools: [forecast],
  store: memoryStore(), // fileStore, sqliteStore, Postgres or Redis, so that sessions outlive the process
});

/** Yours checks the login of your users. */
const USERS = new Map([['Bearer secret-of-ann', { tenant: 'acme', user: 'ann' }]]);

export const handler = serve({
  agents: agent,
  basePath: '/api/agent',
  authorize: (request) => USERS.get(request.headers.get('authorization') ?? ''),
});
