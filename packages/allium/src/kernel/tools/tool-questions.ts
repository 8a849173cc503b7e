/**
 * Questions about the calls of a batch. A question is journaled, put to a handler of this process if there is one, and
 * its first answer counts, whoever gives it: the handler, somebody who posts to the inbox, or the end of its time.
 */

import type { Call } from '../calls/tool-call.js';
import type { ToolContext } from '../context/context.js';
import { type Answer, cameTooLate, checkAnswer, firstAnswer, hasLapsed, settles } from '../inbox/answers.js';
import { cancelled, posted, revokedIn, tookAnswers } from '../inbox/inbox.js';
import { type Admitted, answerEntry, isJudged, judgeAnswer } from '../inbox/judge-answers.js';
import { post, watchInbox } from '../inbox/posting.js';
import { isAllowed } from '../journal/allowances.js';
import { isThrownByStore } from '../journal/bounded-store.js';
import { AlliumError, attribute, isStoreTrouble } from '../lib/errors.js';
import { randomId } from '../lib/random-id.js';
import { Scope, untilAborted } from '../lib/scope.js';
import { startOf } from '../model/write-answer.js';
import type {
  Decision,
  Entry,
  EntryDraft,
  PendingRequest,
  Posted,
  Request,
  RequestHandler,
} from '../protocol/store.js';
import { inDoubtPolicy } from '../protocol/tool.js';
import { QuestionRecord } from './question-record.js';

/** What came first: an answer of the handler (undefined: it has none for now), one in the inbox, or the end of time. */
type Said = Decision | 'posted' | 'lapsed' | undefined;

/** A question that a handler of this process is asked. Attempts that overlap share it. */
interface Question {
  readonly request: PendingRequest;
  readonly said: Promise<Said>;
  /** Aborted when nobody needs the handler's answer any more. */
  readonly scope: Scope;
  /** There is an answer in the inbox, or in the journal. */
  readonly heard: () => void;
  /** The answer that counts, once somebody has begun to take it in. */
  taken: Promise<Decision | undefined> | undefined;
  /** How many attempts wait for it. */
  waiting: number;
}

export class ToolQuestions extends QuestionRecord {
  /** Questions that handlers of this process are asked, by request id. */
  private readonly asked = new Map<string, Question>();
  private stopWatching: (() => void) | undefined = undefined;

  // ── Asking ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** A stored answer, one that comes while a handler here is asked, or none. */
  async answer(
    call: Call,
    request: PendingRequest,
    given: Request,
    scope: Scope,
  ): Promise<Decision | undefined> {
    const { run } = this;
    const stored = run.open.decided?.answers.get(request.id);
    if (stored)
      return stored.admitted || !isJudged(run.plan, stored.decision)
        ? stored.decision
        : this.takeIn(call, request, await judgeAnswer(run, request, stored.decision), stored, []);
    await this.heedRevoked();
    if (isAllowed(run.state.allowed, request)) return this.allow(call, request);
    if (hasLapsed(request, run.clock.now())) return this.decide(call, request, lapsed(request));
    const handler = given.onRequest ?? run.onRequest;
    if (!handler) return undefined;
    const by = given.onRequest && !request.from ? request.by : undefined;
    const question = this.asked.get(request.id) ?? this.ask(call, request, handler, by);
    question.waiting++;
    this.watch();
    try {
      // By the journal, the call may have begun anew since it first asked.
      if (run.open.requests.has(request.id)) await this.write(request);
      const said = await run.paused(() => untilAborted(question.said, scope));
      question.taken ??= this.takeAnswer(call, question, said);
      return await question.taken;
    } catch (error) {
      // A tool may catch it and go on with its work, unless another of its attempts still waits.
      const going = question.waiting === 1 ? this.goingOn(call) : [];
      if (going.length > 0) await run.append(going);
      throw error;
    } finally {
      question.waiting--;
      if (![...this.asked.values()].some(({ waiting }) => waiting > 0)) this.rest();
    }
  }

  /** Before anything counts as allowed: somebody, perhaps in another process, may have revoked it a moment ago. */
  async heedRevoked(): Promise<void> {
    const { run } = this;
    if (!run.state.allowed) return;
    const found = await this.inbox();
    if (revokedIn(found).length > 0) await run.append([tookAnswers(found, new Set())]);
  }

  private async inbox(): Promise<readonly Posted[]> {
    try {
      return await posted(this.run.store, this.run.state);
    } catch (error) {
      // A store that fails is nobody's answer.
      throw this.run.surrender(error);
    }
  }

  /** Somebody said that this need not be asked again. A question that is already open may have been answered otherwise. */
  private async allow(call: Call, request: PendingRequest): Promise<Decision | undefined> {
    const { run } = this;
    const decision: Decision = { type: 'approve' };
    if (run.open.requests.has(request.id)) return this.decide(call, request, { decision });
    run.note(
      request.by ?? 'kernel',
      `did not ask about ${request.toolName}: it is allowed for this session`,
      'allowed',
    );
    return decision;
  }

  /** Journals the question, then asks the handler. If there is no answer, it can be asked again. */
  private ask(
    call: Call,
    request: PendingRequest,
    handler: RequestHandler,
    by: string | undefined,
  ): Question {
    const scope = new Scope(this.run.scope);
    let heard = (): void => {};
    const inInbox = new Promise<'posted'>((resolve) => {
      heard = () => resolve('posted');
    });
    const said = this.write(request).then(() => {
      this.reportPending(call, [request]);
      return this.first(request, inInbox, this.handled(request, handler, by, scope));
    });
    const question: Question = { request, said, scope, heard, taken: undefined, waiting: 0 };
    this.asked.set(request.id, question);
    const over = () => this.asked.delete(request.id);
    said.then((answer) => answer ?? over(), over);
    return question;
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
      return decision === undefined
        ? undefined
        : checkAnswer(request, decision, request.createdAt, this.run.depth > 0);
    } catch (error) {
      // An answer that was posted before it failed counts.
      await this.look();
      // The handler of a sub-agent writes to the journal of the caller.
      if (isThrownByStore(error) || isStoreTrouble(error)) throw this.run.surrender(error);
      attribute(error, { hook: 'onRequest', ...(by && { middleware: by }) }, this.run.call);
      throw error;
    }
  }

  private async first({ timeoutMs, createdAt }: PendingRequest, ...answers: Promise<Said>[]): Promise<Said> {
    if (timeoutMs === undefined) return Promise.race(answers);
    const { clock } = this.run;
    let cancel = (): void => {};
    const late = new Promise<'lapsed'>((resolve) => {
      cancel = clock.setTimer(() => resolve('lapsed'), createdAt + timeoutMs - clock.now());
    });
    return Promise.race([...answers, late]).finally(() => cancel());
  }

  /**
   * A question of a sub-agent, put to a handler of this run. It may be answered here or there; `signal` aborts when it
   * was answered there.
   */
  async relay(
    call: Call,
    ctx: ToolContext,
    request: PendingRequest,
    onRequest: RequestHandler,
    signal: AbortSignal,
  ): Promise<Decision | undefined> {
    const scope = new Scope(ctx._scope);
    const settled = (): void => scope.abort(signal.reason);
    signal.addEventListener('abort', settled, { once: true });
    try {
      return await this.answer(call, request, { onRequest }, scope);
    } catch (error) {
      if (!signal.aborted || ctx._scope.aborted) throw error;
      this.asked.get(request.id)?.scope.abort(signal.reason);
      this.asked.delete(request.id);
      return undefined;
    } finally {
      signal.removeEventListener('abort', settled);
    }
  }

  /** The batch is over: handlers that have not answered hear that nobody waits for them. */
  close(): void {
    const over = 'The call was settled without an answer to this question.';
    for (const { scope, taken } of this.asked.values())
      if (!taken) scope.abort(new AlliumError('REQUEST_UNKNOWN', over));
    this.rest();
  }

  // ── The inbox, as long as somebody waits ───────────────────────────────────────────────────────────────────

  private watch(): void {
    this.stopWatching ??= watchInbox(this.run, () => this.look());
  }

  private rest(): void {
    this.stopWatching?.();
    this.stopWatching = undefined;
  }

  private async look(): Promise<void> {
    const { store, sessionId, state, scope, clock, runId } = this.run;
    let items: readonly Posted[];
    let news: readonly Entry[] = [];
    try {
      items = await posted(store, state);
      if ((await store.head(sessionId)) > state.seq) news = await store.read(sessionId, state.seq + 1);
    } catch {
      // If the store fails for a moment, the next look finds it. What counts is read again when an answer is taken.
      return;
    }
    if (!this.stopWatching) return;
    for (const { item } of items) if (item.type === 'cancel') scope.abort(cancelled(item.reason));
    // Another process that cancels a run which only waits for answers also ends it.
    for (const entry of news)
      if (entry.type === 'run_end' && entry.runId === runId && entry.status === 'aborted')
        scope.abort(cancelled(entry.stop.message));
    for (const { request, heard } of this.asked.values())
      if (firstAnswer(items, request, clock.now()) || news.some((entry) => settles(entry, request))) heard();
  }

  // ── Taking the answer ──────────────────────────────────────────────────────────────────────────────────────

  private async takeAnswer(call: Call, question: Question, said: Said): Promise<Decision | undefined> {
    const { run } = this;
    const { request, scope } = question;
    try {
      if (said === 'lapsed') {
        scope.abort(new AlliumError('REQUEST_UNKNOWN', `${lapsed(request).decision.reason} It has lapsed.`));
        return await this.decide(call, request, lapsed(request));
      }
      if (said === undefined || said === 'posted') {
        const decision = await this.decide(call, request);
        if (decision || said === 'posted') scope.abort(cameTooLate(request.id, []));
        return decision;
      }
      return await this.decide(call, request, await judgeAnswer(run, request, said), () => {
        scope.abort(cameTooLate(request.id, []));
        run.note('kernel', `dropped an answer of onRequest about ${request.toolName} that came too late`);
        run.emitCustom('answer_too_late', { requestId: request.id }, undefined);
      });
    } catch (error) {
      this.asked.delete(request.id);
      throw error;
    } finally {
      // The handler isn't told about an abort that comes later.
      scope.close();
    }
  }

  /**
   * The first answer in the inbox counts. One of this process (`own`) is posted there too; `late` is called if it
   * wasn't the first.
   */
  private async decide(
    call: Call,
    request: PendingRequest,
    own?: Admitted,
    late?: () => void,
  ): Promise<Decision | undefined> {
    const { run } = this;
    const { clock } = run;
    const postId = own && randomId();
    try {
      if (own) await this.post(request, own.decision, postId!);
    } catch (error) {
      throw run.surrender(error);
    }
    const found = await this.inbox();
    const first = firstAnswer(found, request, clock.now()) ?? (own && { decision: own.decision, postId });
    if (!first) return undefined;
    if (own && first.postId === postId) return this.takeIn(call, request, own, first, found);
    late?.();
    return this.takeIn(call, request, await judgeAnswer(run, request, first.decision), first, found);
  }

  private post({ id: requestId, createdAt, timeoutMs }: PendingRequest, decision: Decision, postId: string) {
    const { store, sessionId, clock, depth } = this.run;
    const at = Math.min(clock.now(), createdAt + (timeoutMs ?? Number.POSITIVE_INFINITY));
    const answer = { type: 'answer', requestId, decision, at, postId } as const;
    // A sub-agent is answered by its caller.
    return post(store, sessionId, depth > 0 ? { ...answer, relayed: true } : answer);
  }

  private async takeIn(
    call: Call,
    { id }: PendingRequest,
    { decision, written }: Admitted,
    { postId }: Pick<Answer, 'postId'>,
    found: readonly Posted[],
  ): Promise<Decision> {
    const { run } = this;
    if (written) run.cells.stage(written);
    await run.append([
      answerEntry(run.runId, id, { decision, postId }, true),
      ...(found.length > 0 ? [tookAnswers(found, new Set([id]))] : []),
      ...this.goingOn(call),
    ]);
    return decision;
  }

  /**
   * By the journal, a call that asks has not begun. If it asked in the middle of its work, it goes on with it now, and
   * is in doubt again from here on.
   */
  private goingOn(call: Call): readonly EntryDraft[] {
    if (call.phase !== 'running' || inDoubtPolicy(call.ctx.tool) !== 'fail') return [];
    return [startOf(this.run.runId, this.batch.message.id, call.toolCall.id)];
  }
}

/** What counts as the answer to a question that nobody answered in time. */
function lapsed({ timeoutMs }: PendingRequest) {
  const reason = `Nobody answered within ${timeoutMs} ms.`;
  return { decision: { type: 'reject', reason } } as const;
}
