/** Starts a run, here or in a queue, and answers with its events or its result. */
import type { Agent, RunOptions, RunResult, RunStream, Stop } from '../index.js';
import { afterEntry } from './cursor.js';
import type { ClientEnd, ClientUsage, Question } from './events.js';
import { type Found, tenantOf } from './find-session.js';
import { questionOf, told } from './projection.js';
import {
  type Begin,
  enqueue,
  JobReader,
  type QueuedJob,
  type QueuedOutcome,
  type RunQueue,
} from './queued.js';
import type { EventReader } from './reader.js';
import type { Call, Handling } from './route.js';
import { RunReader } from './run-reader.js';
import { sseLines, sseResponse, type TextSource } from './sse.js';

/** What hooks and tools get to know about the request. */
function runOptions({ handling, caller }: Call, agent: Agent): RunOptions {
  const { user, metadata } = caller;
  const name = handling.names.get(agent);
  return { metadata: { ...metadata, ...(user !== undefined && { user }), agent: name } };
}

/** Starts a run, and answers with its events or, at its end, with JSON. */
export async function runAnswer(call: Call, found: Found, begin: Begin): Promise<Response> {
  const { request, handling } = call;
  const run = await startRun(call, found, begin);
  const leave = leaving(call, run, handling.detached ?? false);
  const headers = sessionHeader(found);
  if (wantsEvents(request)) return events(call, run.reader(), sseLines, leave, headers);
  request.signal.addEventListener('abort', leave, { once: true });
  if (request.signal.aborted) leave();
  const result = await run.result();
  request.signal.removeEventListener('abort', leave);
  return Response.json(answerOf(handling, found.sessionId, result), { headers });
}

/** A run that has begun, here or elsewhere. */
interface StartedRun extends FollowedRun {
  /** Waits for its end. */
  result(): Promise<ShownResult>;
}

/** A run that a request reads. */
export interface FollowedRun {
  reader(): EventReader;
  /** Ends it, if this request has begun it. */
  stop(reason: string): Promise<unknown>;
}

/** What an answer says about a result. */
type ShownResult = Pick<RunResult, 'runId' | 'status' | 'stop' | 'text' | 'pending' | 'usage'>;

export async function startRun(call: Call, found: Found, begin: Begin): Promise<StartedRun> {
  const { queue, hub } = call.handling;
  if (queue) return startQueued(call, queue, found, begin);
  const { storeId, isNew, session } = found;
  const options = runOptions(call, found.agent);
  const start = (): RunStream => {
    if (begin.type === 'run') return session.stream(begin.input, options);
    if (begin.type === 'continue') return session.continueStream(options);
    return session.resumeStream(begin.answers ? { ...options, answers: begin.answers } : options);
  };
  const run = await hub.publish(storeId, start, { isNew });
  call.context?.waitUntil?.(run.ended);
  run.stream.result.catch((error: { result?: RunResult }) => {
    // An aborted run did not fail, and an error without a result is thrown to the handler of the request.
    if (error?.result?.status === 'error') call.handling.onError(error, call.request);
  });
  return {
    reader: () => new RunReader(run.reader()),
    async result() {
      const result = await run.stream.result.catch((error: { result?: RunResult }) => {
        if (error?.result === undefined) throw error;
        return error.result;
      });
      await run.ended;
      return result;
    },
    stop: (reason) => session.abort(reason),
  };
}

async function startQueued(
  call: Call,
  queue: RunQueue,
  { storeId, agent, isNew }: Found,
  begin: Begin,
): Promise<StartedRun> {
  const { handling, caller, request } = call;
  const head = isNew ? 0 : await handling.store.head(storeId);
  const { metadata } = runOptions(call, agent);
  const options = { sessionId: storeId, ...tenantOf(caller), ...(metadata && { metadata }) };
  const runId = await enqueue(queue, handling.names.get(agent)!, begin, options);
  const after = afterEntry(head);
  const result = async (): Promise<ShownResult> => {
    const { status, ...outcome } = await queue.finished(runId, { signal: request.signal });
    return {
      stop: STOP[status],
      usage: NO_USAGE,
      pending: [],
      ...outcome,
      status: status === 'failed' ? 'error' : status,
    };
  };
  const job: QueuedJob = {
    runId: begin.type === 'resume' ? undefined : runId,
    endId: after,
    end: async () => endOf(await result()),
  };
  return {
    // After everything that was there before.
    reader: () => new RunReader(new JobReader(readerOf(call, storeId, head === 0 ? undefined : after), job)),
    result,
    stop: (reason) => queue.cancel(runId, reason),
  };
}

/** For runs that were over before they began. */
const STOP: Readonly<Record<QueuedOutcome['status'], Stop>> = {
  done: { reason: 'final' },
  stopped: { reason: 'stopped' },
  suspended: { reason: 'suspended' },
  aborted: { reason: 'aborted' },
  failed: { reason: 'error' },
};
const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 } as const;

/** What happens when the client leaves. A detached run is not affected. */
export function leaving({ body }: Call, run: FollowedRun, otherwise: boolean): () => void {
  const detached = (body?.detached as boolean | undefined) ?? otherwise;
  return () => {
    // It may have ended just now.
    if (!detached) run.stop('The client left.').catch(() => undefined);
  };
}

/** Ends the run under way, wherever it is. */
export async function stopRun(
  { handling: { queue } }: Call,
  { session, storeId }: Found,
  reason: string | undefined,
): Promise<void> {
  if (!(await queue?.stop(storeId, reason))) await session.abort(reason);
}

/** Ends the run under way, if there is one, and waits until it has ended. */
export async function endRun(call: Call, found: Found, reason: string): Promise<void> {
  if (!(await isBusy(call, found.storeId))) return;
  const reader = readerOf(call, found.storeId, 'now');
  await stopRun(call, found, reason);
  while (await reader.next());
}

/** Is there a run under way, as far as this process knows? */
export async function isBusy({ handling: { queue, hub } }: Call, storeId: string): Promise<boolean> {
  return queue ? queue.isBusy(storeId) : hub.isLive(storeId);
}

/** A reader of past events and those to come. */
export function readerOf(
  { handling: { queue, hub, show } }: Call,
  storeId: string,
  after?: string,
): EventReader {
  const options = after === undefined ? {} : { after };
  return queue ? queue.reader(storeId, { ...options, show }) : hub.reader(storeId, options);
}

/** A stream of lines that ends with its reader. */
export function events(
  { handling, request }: Call,
  reader: EventReader,
  lines: (reader: EventReader) => TextSource,
  onLeave: () => void = () => {},
  headers: Readonly<Record<string, string>> = {},
): Response {
  let over = false;
  const leave = (): void => {
    if (over) return;
    over = true;
    reader.leave();
    onLeave();
  };
  const next = lines(reader);
  const ending: TextSource = async () => {
    const text = await next();
    if (text === undefined) over = true;
    return text;
  };
  // Platforms cancel the body or abort the signal when a client leaves, or both.
  const onBegin = (): void => {
    if (request.signal.aborted) leave();
    else request.signal.addEventListener('abort', leave, { once: true });
  };
  return sseResponse(ending, { heartbeatMs: handling.heartbeatMs, onBegin, onLeave: leave, headers });
}

export function sessionHeader({ sessionId }: Found): Readonly<Record<string, string>> {
  return { 'x-session-id': encodeURIComponent(sessionId) };
}

export function wantsEvents(request: Request): boolean {
  return request.headers.get('accept')?.includes('text/event-stream') ?? false;
}

/** The JSON answer of a run. */
export interface RunAnswer extends ClientEnd {
  readonly sessionId: string;
  readonly text: string;
  readonly questions: readonly Question[];
  readonly usage?: ClientUsage;
}

function answerOf({ showsUsage }: Handling, sessionId: string, result: ShownResult): RunAnswer {
  const { text, pending, usage } = result;
  return {
    sessionId,
    ...endOf(result),
    text,
    questions: pending.map(questionOf),
    ...(showsUsage && { usage }),
  };
}

function endOf({ runId, status, stop }: ShownResult): ClientEnd {
  return { runId, status, stop: told(status, stop) };
}
