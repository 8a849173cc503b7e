/** The floor of persistence: the messages of a run as JSON lines, without an agent. */
import { appendFileSync, closeSync, openSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { timeMany } from '../work/many.mjs';
import { callingModel } from '../work/models.mjs';
import { withPostgres } from '../work/postgres.mjs';
import { agentFor } from './allium.mjs';

export const what =
  'no agent: takes the messages of a finished run and writes each as a line of JSON, a new file for every run, no `fsync`; or inserts one row per turn into an SQLite database (WAL, `synchronous = NORMAL`), each in a transaction of its own';

/** One file, opened at the start of the session and kept open to its end. */
function writeLines(file, messages) {
  const descriptor = openSync(file, 'a');
  for (const message of messages) writeSync(descriptor, `${JSON.stringify(message)}\n`);
  closeSync(descriptor);
}

/** Opens, writes and closes for every message. */
function appendLines(file, messages) {
  for (const message of messages) appendFileSync(file, `${JSON.stringify(message)}\n`);
}

const WAYS = { writeSync: writeLines, appendFileSync: appendLines };

export async function turns({ turns, way, folder }) {
  const { messages } = await agentFor(callingModel(turns), turns).run('go');
  const called = messages.filter(({ role }) => role === 'tool').length;
  let session = 0;
  return async () => {
    WAYS[way](join(folder, `${session++}.jsonl`), messages);
    return called;
  };
}

/** The least an SQLite store can do: what a turn added is a row, committed before the next turn begins. */
export async function inserts({ turns, folder }) {
  const { messages } = await agentFor(callingModel(turns), turns).run('go');
  const called = messages.filter(({ role }) => role === 'tool').length;
  const BuiltIn = process.getBuiltinModule?.('node:sqlite')?.DatabaseSync;
  const Database = BuiltIn ?? createRequire(import.meta.url)('libsql');
  const database = new Database(join(folder, 'rows.db'));
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
  database.exec('CREATE TABLE rows (id INTEGER PRIMARY KEY, entries TEXT NOT NULL)');
  const insert = database.prepare('INSERT INTO rows (entries) VALUES (?)');
  return async () => {
    for (let i = 0; i < messages.length; i += 2) insert.run(JSON.stringify(messages.slice(i, i + 2)));
    return called;
  };
}

/** Many sessions at once, each of which inserts a row per turn into Postgres and waits for it. */
export async function manyInserts({ turns, ...crowd }) {
  const { messages } = await agentFor(callingModel(turns), turns).run('go');
  return withPostgres(async (pool) => {
    await pool.query(
      'CREATE TABLE rows (session text COLLATE "C", seq integer, entries text NOT NULL, PRIMARY KEY (session, seq))',
    );
    return timeMany(async (id) => {
      for (let i = 0; i < messages.length; i += 2)
        await pool.query(insertion(id, i, messages.slice(i, i + 2)));
      return turns;
    }, crowd);
  });
}

const insertion = (id, seq, messages) => ({
  name: 'insert',
  text: 'INSERT INTO rows (session, seq, entries) VALUES ($1, $2, $3)',
  values: [id, seq, JSON.stringify(messages)],
});
