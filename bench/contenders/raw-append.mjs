/** The floor of persistence: the messages of a run as JSON lines, without an agent. */
import { appendFileSync, closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { ownFolder } from '../work/folder.mjs';
import { callingModel } from '../work/models.mjs';
import { agentFor } from './allium.mjs';

export const what =
  'no agent: takes the messages of a finished run and writes each as a line of JSON, a new file for every run, no `fsync`';

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

export async function turns({ turns, way }) {
  const { messages } = await agentFor(callingModel(turns), turns).run('go');
  const called = messages.filter(({ role }) => role === 'tool').length;
  const folder = ownFolder();
  let session = 0;
  return async () => {
    WAYS[way](join(folder, `${session++}.jsonl`), messages);
    return called;
  };
}
