/** Allium with a store to keep sessions in. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { postgresStore } from '@allium/store-postgres';
import { historyTruncator } from 'allium/middleware/history-truncator';
import { fileStore } from 'allium/stores/file';
import { memoryStore } from 'allium/stores/memory';
import { sqliteStore } from 'allium/stores/sqlite';
import { bytesIn, ownFolder } from '../work/folder.mjs';
import { ROUNDS, timeMany } from '../work/many.mjs';
import { callingModel, USAGE } from '../work/models.mjs';
import { withPostgres } from '../work/postgres.mjs';
import { ARGUMENTS, executed, NAME } from '../work/tool.mjs';
import { agentFor } from './allium.mjs';

export const what =
  '`agent.session().run()`, a new session for every run, on a store with its default settings: no `fsync` per append';

const STORES = {
  memory: () => memoryStore(),
  file: (folder) => fileStore({ dir: folder }),
  sqlite: (folder) => sqliteStore({ path: databaseIn(folder) }),
};

const databaseIn = (folder) => join(folder, 'sessions.db');

export function turns({ turns, store: kind, folder }) {
  const store = STORES[kind](folder);
  const agent = agentFor(callingModel(turns), turns, { store });
  let session = 0;
  return async () => {
    const before = executed.count;
    const id = `session-${session++}`;
    await agent.session(id).run('go');
    // Files may stay. What stays in memory would be swept over and over, at the expense of later runs.
    if (kind === 'memory') store.delete(id);
    return executed.count - before;
  };
}

/** Bytes that `total` turns leave on disk, in sessions of `turns`, beside the JSON of their messages. */
export async function bytes({ turns, total, store: kind }) {
  const folder = ownFolder();
  const store = STORES[kind](folder);
  const agent = agentFor(callingModel(turns), turns, { store });
  settle(kind, folder);
  const empty = bytesIn(folder);
  let json = 0;
  for (let session = 0; session < total / turns; session++) {
    const { messages } = await agent.session(`session-${session}`).run('go');
    for (const message of messages) json += Buffer.byteLength(JSON.stringify(message));
  }
  settle(kind, folder);
  return { bytesPerTurn: (bytesIn(folder) - empty) / total, jsonPerTurn: json / total };
}

/** What a turn costs while many sessions work at once, and how many statements it takes. */
export async function many({ turns, store: kind, ...crowd }) {
  if (kind !== 'postgres') return timeMany(sessionsOn(STORES[kind](ownFolder()), turns), crowd);
  return withPostgres(async (pool, statements) => {
    const run = sessionsOn(postgresStore({ pool, prepare: true }), turns);
    // The first use makes the tables.
    await run('first');
    const before = statements();
    const figures = await timeMany(run, crowd);
    return { ...figures, perTurn: (statements() - before) / (crowd.sessions * ROUNDS * turns) };
  });
}

function sessionsOn(store, turns) {
  const agent = agentFor(callingModel(turns), turns, { store });
  return async (id) => {
    const { turns: taken } = await agent.session(id).run('go');
    if (taken !== turns + 1) throw new Error(`The run took ${taken} turns, expected ${turns + 1}.`);
    return turns;
  };
}

/** Statements of the turns of one session alone, by the difference of two lengths: what a run takes besides is not a turn's. */
export async function statements({ turns }) {
  return withPostgres(async (pool, statements) => {
    const store = postgresStore({ pool, prepare: true });
    const asked = async (length) => {
      const run = sessionsOn(store, length);
      const before = statements();
      await run(`of ${length}`);
      return statements() - before;
    };
    await asked(1);
    const [short, long] = [await asked(turns), await asked(2 * turns)];
    return { perTurn: (long - short) / turns, perRun: short - (long - short) };
  });
}

/**
 * Milliseconds through new handles: to open a session of `turns`, to read its messages, and for a run in it whose requests
 * are short.
 */
export async function opening({ turns, store: kind }) {
  const folder = ownFolder();
  const store = STORES[kind](folder);
  await agentFor(callingModel(turns), turns, { store }).session('long').run('go');
  const chat = agentFor(chattingModel, 1, { store }).session('chat');
  for (let i = 0; i < turns; i += 2) await chat.run('go');
  const timed = async (ask, more, id = 'long') => {
    const times = [];
    for (let i = 0; i < OPENINGS; i++) {
      const opened = kind === 'memory' ? store : STORES[kind](folder);
      const agent = agentFor(callingModel(1), 1, { store: opened, ...more });
      const start = performance.now();
      await ask(agent.session(id));
      times.push(performance.now() - start);
    }
    return times.sort((a, b) => a - b)[OPENINGS >> 1];
  };
  return {
    openMs: await timed((session) => session.pending()),
    messagesMs: await timed((session) => session.messages()),
    runMs: await timed(
      (session) => session.run('go on'),
      {
        model: chattingModel,
        middleware: [historyTruncator({ maxMessages: 100 })],
      },
      'chat',
    ),
  };
}

const OPENINGS = 5;

/** Two turns for every message: a call, and an answer to its result. */
const chattingModel = {
  provider: 'bench',
  id: 'chatting',
  async *stream({ messages }) {
    const isAnswered = messages.at(-1).role === 'tool';
    if (isAnswered) yield { type: 'text', text: 'done' };
    else yield { type: 'tool-call', id: `call-${messages.length}`, name: NAME, arguments: ARGUMENTS };
    yield { type: 'finish', reason: isAnswered ? 'stop' : 'tool-calls', usage: USAGE };
  },
};

/** Moves what SQLite has in its write-ahead log into the database, where it counts once. */
function settle(kind, folder) {
  if (kind !== 'sqlite') return;
  const BuiltIn = process.getBuiltinModule?.('node:sqlite')?.DatabaseSync;
  const Database = BuiltIn ?? createRequire(import.meta.url)('libsql');
  const database = new Database(databaseIn(folder));
  database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').all();
  database.close();
}
