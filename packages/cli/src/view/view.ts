/** Shows a run as it happens, asks its questions in between, and says how it ended. */
import {
  type AgentEvent,
  type Decision,
  type PendingRequest,
  type RequestContext,
  RunError,
  type RunResult,
  type RunStream,
} from 'allium';
import { catchConsole } from '../terminal/console.js';

export interface View {
  /**
   * `at` is when it came, by `performance.now()`: it may have waited for its turn. `asked`: it is the start of a call
   * that somebody is asked about, which the question shows too.
   */
  event(event: AgentEvent, at?: number, asked?: boolean): void;
  /** Something is going to be asked: leave the screen alone. */
  pause(): void;
  /** The run asks something, and is answered in place. */
  request?(request: PendingRequest): void;
  answer?(request: PendingRequest, decision: Decision): void;
  /** Tools and middleware wrote this line to the console. Without this method the console is left alone. */
  log?(line: string): void;
}

export interface Ended {
  /** Undefined when the run did not even begin. */
  readonly result: RunResult | undefined;
  /** Why it failed or was aborted. */
  readonly error: unknown;
}

/** The result with a reason that may be shown. If the run failed, short secrets are removed from it, too. */
export function withoutSecrets(
  result: RunResult,
  redact: (text: string) => string,
  redactError: (text: string) => string,
): RunResult {
  const { status, stop } = result;
  if (stop.message === undefined) return result;
  const message = status === 'error' ? redactError(stop.message) : redact(stop.message);
  return { ...result, stop: { ...stop, message } };
}

/** Undefined: not now, so the run is suspended. The signal aborts when somebody else has answered. */
export type Asker = (request: PendingRequest, ctx: RequestContext) => Promise<Decision | undefined>;

export interface FollowOptions {
  /** Answers what the run asks. @default nobody: it is suspended */
  readonly ask?: Asker;
  /** Milliseconds to wait after each piece of text, for people who want to watch. @default 0 */
  readonly paceMs?: number;
}

/**
 * Starts a run and shows every event; never throws because of the run. Events, questions and lines of the console are
 * shown one after the other, in order: a question waits until what led to it is shown, and what comes while it is
 * open waits for the answer.
 */
export async function follow(
  start: (onRequest: Asker) => RunStream,
  view: View,
  { ask, paceMs = 0 }: FollowOptions = {},
): Promise<Ended> {
  const line = makeQueue();
  const onRequest: Asker = async (request, ctx) => {
    // Earlier events are still in the stream: let the reader below take them first.
    await new Promise(setImmediate);
    return line.add(async () => {
      view.pause();
      view.request?.(request);
      const decision = ctx.signal.aborted ? undefined : await ask?.(request, ctx);
      if (decision && !ctx.signal.aborted) view.answer?.(request, decision);
      return decision;
    });
  };
  /** Lines of the console that came in the middle of a message: they would tear it apart. */
  const held: string[] = [];
  let speaking = false;
  const tell = (): void => {
    for (const text of held.splice(0)) view.log?.(text);
  };
  const show = (event: AgentEvent, at: number, asked?: boolean): void => {
    view.event(event, at, asked);
    if (event.type === 'message_start') speaking = true;
    else if (event.type === 'message_end') {
      speaking = false;
      tell();
    }
  };
  const logged = (text: string): void => {
    held.push(text);
    if (!speaking) tell();
  };
  const release = view.log && catchConsole((text) => line.run(() => logged(text)));
  try {
    const stream = start(onRequest);
    const asked = new Set<string>();
    for await (const event of stream) {
      const at = performance.now();
      if (event.type === 'tool_execution_waiting') asked.add(event.toolCall.id);
      if (event.type === 'tool_execution_start')
        void line.add(async () => {
          // The event that a call waits comes right after its start.
          await new Promise(setImmediate);
          show(event, at, asked.has(event.toolCall.id));
        });
      else line.run(() => show(event, at));
      if (paceMs > 0 && event.type === 'message_update')
        void line.add(() => new Promise((resolve) => setTimeout(resolve, paceMs)));
    }
    return { result: await stream.result, error: undefined };
  } catch (error) {
    return { result: error instanceof RunError ? error.result : undefined, error };
  } finally {
    await line.add(async () => {});
    release?.();
    tell();
    view.pause();
  }
}

/** One thing after the other. What need not wait is done at once, so that a view is never late without reason. */
function makeQueue(): { run(task: () => void): void; add<T>(task: () => Promise<T>): Promise<T> } {
  let waiting = 0;
  let last: Promise<unknown> = Promise.resolve();
  const add = <T>(task: () => Promise<T>): Promise<T> => {
    waiting++;
    const done = last.then(task).finally(() => {
      waiting--;
    });
    last = done.catch(() => {});
    return done;
  };
  return {
    add,
    run(task) {
      if (waiting === 0) task();
      else void add(async () => task());
    },
  };
}
