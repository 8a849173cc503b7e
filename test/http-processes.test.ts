// A run in one process, its reader cut off at every event, and another process that goes on from there.

import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Agent, type Store } from 'allium';
import { serve } from 'allium/http';
import {
  alliumClient,
  applyEvent,
  EMPTY_VIEW,
  messageText,
  type SentEvent,
  type View,
} from 'allium/http/client';
import { scriptedModel } from 'allium/testing';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { build } from '../scripts/build.mjs';
import { startPostgres } from '../scripts/postgres.mjs';
import { startRedis } from '../scripts/redis.mjs';
import { openStore } from './fixtures/named-store.mjs';

const runner = fileURLToPath(new URL('fixtures/http-runner.mjs', import.meta.url));
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});
beforeAll(build);

async function all(events: AsyncIterable<SentEvent>): Promise<SentEvent[]> {
  const sent: SentEvent[] = [];
  for await (const one of events) sent.push(one);
  return sent;
}

const viewOf = (sent: readonly SentEvent[], from: View = EMPTY_VIEW): View =>
  sent.reduce((view, { event }) => applyEvent(view, event), from);

/** Where both processes find their store. */
const PLACES: Record<string, () => Promise<string>> = {
  file: async () => `file:${join(newFolder(), 'sessions')}`,
  sqlite: async () => `sqlite:${join(newFolder(), 'sessions.db')}`,
  async postgres() {
    const server = await startPostgres();
    ends.push(() => server.stop());
    return server.connectionString;
  },
  async redis() {
    const server = await startRedis();
    ends.push(() => server.stop());
    return server.url;
  },
};

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'allium-http-'));
  ends.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A server in another process, and one here, that share a store. */
async function twoServers(kind: string) {
  const name = await PLACES[kind]!();
  const child = fork(runner, [name], { execArgv: [] });
  ends.push(() => child.kill('SIGKILL'));
  const port = await new Promise<number>((resolve, reject) => {
    child.once('message', (message) => resolve(message as number));
    child.once('exit', (code) => reject(new Error(`The runner ended with ${code}.`)));
  });
  const store: Store & { close?: () => unknown } = await openStore(name);
  ends.push(() => store.close?.());
  const agent = new Agent({ model: scriptedModel([]), store });
  const handler = serve({ agents: agent, authorize: 'none', pollMs: [5, 20] });
  return {
    there: alliumClient({ baseUrl: `http://127.0.0.1:${port}` }),
    here: alliumClient({
      baseUrl: 'http://x',
      fetch: async (url, init) => handler(new Request(url as string, init)),
    }),
  };
}

/** What is the same in every run of the same script. */
const plain = ({ status, messages }: View) => ({ status, said: messages.map(messageText) });

describe.each(Object.keys(PLACES))('on %s', (kind) => {
  it('goes on by Last-Event-ID in another process', async () => {
    const { there, here } = await twoServers(kind);
    const run = there.run('Hi');
    const live = await all(run);
    const sessionId = await run.sessionId;
    const whole = viewOf(live);
    expect(whole.status).toBe('done');
    expect(viewOf(await all(here.join(sessionId)))).toEqual(whole);
    for (const [i, { id }] of live.entries()) {
      const rest = await all(here.join(sessionId, { after: id }));
      expect(viewOf(rest, viewOf(live.slice(0, i + 1))), `cut at ${id}`).toEqual(whole);
    }
  });

  it('goes on in both processes when its reader leaves at any event, while it runs', async () => {
    const { there, here } = await twoServers(kind);
    const live = await all(there.run('Hi'));
    const whole = plain(viewOf(live));
    for (let cut = 1; cut < live.length; cut++) {
      const run = there.run('Hi');
      const first: SentEvent[] = [];
      for await (const one of run) if (first.push(one) === cut) break;
      const sessionId = await run.sessionId;
      const { id: after } = first.at(-1)!;
      const joined = await Promise.all([here, there].map((client) => all(client.join(sessionId, { after }))));
      for (const [i, rest] of joined.entries()) {
        const told = [...first, ...rest];
        expect(plain(viewOf(told)), `cut after ${cut}, reader ${i}`).toEqual(whole);
        expect(new Set(told.map(({ id }) => id)).size, `ids, cut after ${cut}`).toBe(told.length);
      }
    }
  });
});
