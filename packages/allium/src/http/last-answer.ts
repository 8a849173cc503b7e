/** The last answer of a chat: where it begins, and whether it is being written. */
import type { Entry, Message } from '../index.js';
import { isBusy, readerOf } from './answer-run.js';
import type { Found } from './find-session.js';
import type { EventReader } from './follow.js';
import { isTryOf } from './from-start.js';
import type { Call } from './route.js';
import { RunReader } from './run-reader.js';
import { isTurn } from './ui-history.js';

/** Reads the last answer from its beginning: one that was written, or the one that is being written. */
export async function lastAnswer(
  call: Call,
  { storeId }: Found,
  messages: readonly Message[],
): Promise<LastAnswer | undefined> {
  const { store, projection } = call.handling;
  const begun = messages.findLast(isTurn)?.id;
  const entries = await store.read(storeId, 1);
  // It follows the message, or what took an earlier answer back.
  const entry = entries.findLast((one) =>
    one.type === 'rewind' ? one.to === begun : one.type === 'message' && one.message.id === begun,
  );
  if (begun === undefined || entry === undefined) return undefined;
  const reader = new RunReader(readerOf(call, storeId, `${entry.seq}.${projection.entry(entry).length - 1}`));
  const isOver = await hasEnded(call, storeId, entries.slice(entries.indexOf(entry)));
  const isOpen =
    !isOver && (await reader.hasMore()) && (!isWaiting(entries) || (await isBusy(call, storeId)));
  return { reader, isOpen };
}

/** An attempt that failed isn't the end if a worker tries again. */
async function hasEnded(call: Call, storeId: string, entries: readonly Entry[]): Promise<boolean> {
  const runs = entries.filter((one) => one.type === 'run_start' || one.type === 'run_end');
  const end = runs.find((one) => one.type === 'run_end');
  const last = runs.at(-1);
  if (end?.status !== 'error') return end !== undefined;
  if (last?.type === 'run_start') return !isTryOf(last.runId, end.runId);
  return last?.status !== 'error' || !(await isBusy(call, storeId));
}

export interface LastAnswer {
  readonly reader: EventReader;
  /** It is being written. */
  readonly isOpen: boolean;
}

/** Does the last run wait for answers? Then its questions are in the history. */
function isWaiting(entries: readonly { readonly type: string }[]): boolean {
  const last = (type: string): number => entries.findLastIndex((one) => one.type === type);
  return last('request') > Math.max(last('answer'), last('run_start'), last('tool_finished'));
}
