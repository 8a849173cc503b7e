/** Questions that are open here: a handler of this process is asked, and whoever posts an answer is heard. */
import { checkAnswer, firstAnswer } from '../inbox/answers.js';
import { posted } from '../inbox/inbox.js';
import { onPost } from '../inbox/posting.js';
import { type AlliumError, attribute, isThenable } from '../lib/errors.js';
import { Scope } from '../lib/scope.js';
import { Aborted } from '../protocol/signals.js';
import type { Decision, Entry, PendingRequest, Posted, RequestHandler } from '../protocol/store.js';
import type { ToolsRun } from './tools-run.js';

/** How often the inbox is looked at for what other processes post. */
const LOOK_MS = 250;

/** What came first: the answer of the handler (undefined: none for now), one of somebody else, or the end of its time. */
export type Said = Decision | 'posted' | 'lapsed' | undefined;

export interface Question {
  readonly request: PendingRequest;
  readonly said: Promise<Said>;
  /** Aborted when the handler's answer is of no use any more. */
  readonly scope: Scope;
  /** There is an answer in the inbox. */
  readonly heard: () => void;
  /** The answer as it was taken in, once somebody did. */
  taken: Promise<Decision | undefined> | undefined;
  /** How many attempts wait for it. */
  waiting: number;
}

export class LiveQuestions {
  private readonly asked = new Map<string, Question>();
  private stopWatching: (() => void) | undefined;
  private looking = false;
  /** Something may have been posted since the last look began. */
  private again = false;

  constructor(private readonly run: ToolsRun) {}

  /**
   * Attempts that overlap, or follow one that was given up, ask as one. The handler is asked once `write` has journaled
   * the question. What came to nothing can be asked again. `by`: the middleware whose handler it is.
   */
  ask(
    request: PendingRequest,
    handler: RequestHandler,
    by: string | undefined,
    write: () => Promise<void>,
  ): Question {
    const known = this.asked.get(request.id);
    if (known) return known;
    const scope = new Scope(this.run.scope);
    let heard = (): void => {};
    const posted = new Promise<'posted'>((resolve) => {
      heard = () => resolve('posted');
    });
    const said = write().then(() => this.first(request, posted, this.handled(request, handler, by, scope)));
    const question: Question = { request, said, scope, heard, taken: undefined, waiting: 0 };
    this.asked.set(request.id, question);
    const over = (): void => this.forget(request);
    said.then((answer) => answer ?? over(), over);
    return question;
  }

  forget({ id }: PendingRequest): void {
    this.asked.delete(id);
  }

  /** It was settled elsewhere: nobody here asks it any more. */
  drop(request: PendingRequest, reason: unknown): void {
    this.asked.get(request.id)?.scope.abort(reason);
    this.forget(request);
  }

  /** Tells the handlers that are still asked why nobody waits for them any more. */
  close(reason: AlliumError): void {
    for (const { scope, taken } of this.asked.values()) if (!taken) scope.abort(reason);
    this.rest(true);
  }

  private async handled(
    request: PendingRequest,
    handler: RequestHandler,
    by: string | undefined,
    scope: Scope,
  ): Promise<Decision | undefined> {
    const ctx = {
      get signal(): AbortSignal {
        return scope.signal;
      },
    };
    try {
      const decision = await handler(request, ctx);
      return decision === undefined ? undefined : checkAnswer(request, decision, request.createdAt);
    } catch (error) {
      // Whoever answered before it failed is heard first.
      await this.lookOnce();
      attribute(error, { hook: 'onRequest', ...(by && { middleware: by }) }, this.run);
      throw error;
    }
  }

  private first(
    { timeoutMs, createdAt }: PendingRequest,
    posted: Promise<Said>,
    handled: Promise<Said>,
  ): Promise<Said> {
    if (timeoutMs === undefined) return Promise.race([posted, handled]);
    const { clock } = this.run;
    let cancel = (): void => {};
    const late = new Promise<'lapsed'>((resolve) => {
      cancel = clock.setTimer(() => resolve('lapsed'), createdAt + timeoutMs - clock.now());
    });
    return Promise.race([posted, handled, late]).finally(() => cancel());
  }

  // ── The inbox, as long as somebody waits ───────────────────────────────────────────────────────────────────

  watch(): void {
    if (this.stopWatching) return;
    const { store, sessionId, clock } = this.run;
    let cancel = (): void => {};
    const next = (): void => {
      cancel = clock.setTimer(() => {
        next();
        void this.look();
      }, LOOK_MS);
    };
    const unlisten = onPost(store, sessionId, () => void this.look());
    this.stopWatching = () => {
      cancel();
      unlisten();
    };
    next();
    void this.look();
  }

  rest(closed = false): void {
    if (!closed && [...this.asked.values()].some(({ waiting }) => waiting > 0)) return;
    this.stopWatching?.();
    this.stopWatching = undefined;
  }

  /** One look at a time, however slow the store is. */
  private async look(): Promise<void> {
    this.again = true;
    if (this.looking) return;
    this.looking = true;
    while (this.again && this.stopWatching) {
      this.again = false;
      await this.lookOnce();
    }
    this.looking = false;
  }

  private async lookOnce(): Promise<void> {
    const { store, sessionId, state, scope, clock } = this.run;
    let items: readonly Posted[];
    let news: readonly Entry[] = [];
    try {
      items = await posted(store, state);
      const head = store.head(sessionId);
      if ((isThenable(head) ? await head : head) > state.seq)
        news = await store.read(sessionId, state.seq + 1);
    } catch {
      // A store that fails for a moment is looked at again. What counts is read once more when an answer is taken.
      return;
    }
    if (!this.stopWatching) return;
    for (const { item } of items)
      if (item.type === 'cancel') scope.abort(new Aborted(item.reason ?? 'The run was cancelled.'));
    for (const { request, heard } of this.asked.values())
      if (firstAnswer(items, request, clock.now()) || news.some((entry) => settles(entry, request))) heard();
  }
}

/** Does it close the question? An answer was taken, the run has ended, or something else is asked instead. */
export function settles(entry: Entry, { id, runId }: PendingRequest): boolean {
  if (entry.type === 'answer') return entry.requestId === id;
  if (entry.type === 'request') return entry.replaces?.includes(id) === true;
  return entry.type === 'run_end' && entry.runId === runId;
}
