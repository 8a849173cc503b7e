/** Questions about the calls of a batch: they are journaled, put to whoever can answer here, and their answers taken in. */

import type { ToolContext } from '../context/context.js';
import { type Answer, cameTooLate, firstAnswer, hasLapsed } from '../inbox/answers.js';
import { posted, tookAnswers } from '../inbox/inbox.js';
import { type Admitted, admit, answerEntry, isJudged } from '../inbox/judge-answers.js';
import { post } from '../inbox/posting.js';
import { isAllowed } from '../journal/allowances.js';
import { AlliumError, isThenable } from '../lib/errors.js';
import { randomId } from '../lib/random-id.js';
import { Scope, untilAborted } from '../lib/scope.js';
import { deepFreeze } from '../messages/messages.js';
import { startOf } from '../model/tool-starts.js';
import type {
  Decision,
  EntryBody,
  EntryDraft,
  PendingRequest,
  Posted,
  Request,
  RequestHandler,
} from '../protocol/store.js';
import { inDoubtPolicy } from '../protocol/tool.js';
import { hashOf, shownArguments } from './effective-arguments.js';
import { LiveQuestions, type Question, type Said } from './live-questions.js';
import type { ToolBatch } from './tool-batch.js';
import type { Call } from './tool-call.js';
import { waits } from './tool-results.js';
import type { ToolsRun } from './tools-run.js';

export class ToolQuestions {
  /** What waits to be written: verdicts and questions. */
  entries: EntryBody[] = [];
  /** Ids of questions that events have told of. */
  private readonly told = new Set<string>();
  /** Made for the first question to a handler here. */
  private live: LiveQuestions | undefined;

  constructor(private readonly batch: ToolBatch) {}

  private get run(): ToolsRun {
    return this.batch.runner;
  }

  /** The id names call and arguments, so an answer is found again after a resume and never serves other arguments. */
  async make(
    call: Call,
    ctx: ToolContext,
    kind: PendingRequest['kind'],
    given: Request,
    by?: string,
    part = '',
  ): Promise<PendingRequest> {
    const { onRequest: _, timeoutMs, ...request } = given;
    const { runId, open, clock } = this.run;
    const hash = hashOf(ctx);
    const id = `${this.prefixOf(call, kind)}${part}.${hash.slice(0, 8)}`;
    const known = open.requests.get(id);
    if (known) return known;
    const about = {
      callId: call.toolCall.id,
      toolName: ctx.toolCall.name,
      arguments: JSON.stringify(ctx._input.raw ?? null),
      effectiveArguments: await shownArguments(ctx),
    };
    return deepFreeze({
      ...request,
      // JSON has no infinity: what never lapses says nothing of it.
      ...(Number.isFinite(timeoutMs) && { timeoutMs }),
      id,
      runId,
      ...about,
      kind,
      hash,
      ...(by && { by }),
      createdAt: clock.now(),
    });
  }

  private prefixOf({ index }: Call, kind: PendingRequest['kind']): string {
    return `${this.batch.message.id}.${index}.${kind}`;
  }

  /** Arguments that a person has written for this call, whatever became of those that were asked about. */
  editOf(call: Call): (Decision & { readonly type: 'edit' }) | undefined {
    const prefix = `${this.prefixOf(call, 'ask')}.`;
    let last: (Decision & { readonly type: 'edit' }) | undefined;
    for (const [id, { decision }] of this.run.open.decided?.answers ?? [])
      if (id.startsWith(prefix) && decision.type === 'edit') last = decision;
    return last;
  }

  /** A stored answer, one that came while the question was open here, or none. */
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
        : this.takeIn(call, request, await admit(run, request, stored.decision), stored, []);
    if (isAllowed(run.state.allowed, request)) return this.allow(call, request);
    if (hasLapsed(request, run.clock.now())) return this.decide(call, request, lapsed(request));
    const handler = given.onRequest ?? run.onRequest;
    if (!handler) return undefined;
    this.live ??= new LiveQuestions(run);
    const by = given.onRequest && !request.from ? request.by : undefined;
    const question = this.live.ask(request, handler, by, async () => {
      await this.write(request);
      this.tell(call, [request]);
    });
    question.waiting++;
    this.live.watch();
    try {
      // By the journal the call may have begun anew since it was first asked.
      if (run.open.requests.has(request.id)) await this.write(request);
      const said = await run.paused(() => untilAborted(question.said, scope));
      question.taken ??= this.take(call, question, said);
      return await question.taken;
    } catch (error) {
      // A tool may catch it and go on with its work, unless another attempt of it still waits.
      const going = question.waiting === 1 ? this.goingOn(call) : [];
      if (going.length > 0) await run.append(going);
      throw error;
    } finally {
      question.waiting--;
      this.live.rest();
    }
  }

  /** Somebody said before that this need not be asked. A question that is open already may have been answered otherwise. */
  private async allow(call: Call, request: PendingRequest): Promise<Decision | undefined> {
    const { run } = this;
    const decision: Decision = { type: 'approve' };
    if (run.open.requests.has(request.id)) return this.decide(call, request, { decision });
    run.note(request.by ?? 'kernel', `did not ask about ${request.toolName}: it is allowed for this session`);
    return decision;
  }

  /**
   * A question of a sub-agent, put to a handler of this run: it is answered here or there, and `signal` aborts when it was
   * there.
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
      this.live?.drop(request, signal.reason);
      return undefined;
    } finally {
      signal.removeEventListener('abort', settled);
    }
  }

  /** Nobody waits for the handlers that have not answered yet. */
  close(): void {
    this.live?.close(
      new AlliumError('REQUEST_UNKNOWN', 'The call was settled without an answer to this question.'),
    );
  }

  // ── What was answered ──────────────────────────────────────────────────────────────────────────────────────

  private async take(call: Call, question: Question, said: Said): Promise<Decision | undefined> {
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
      return await this.decide(call, request, await admit(run, request, said), () => {
        scope.abort(cameTooLate(request.id, []));
        run.note('kernel', `dropped an answer of onRequest about ${request.toolName}: it came too late`);
        run.emitCustom('answer_too_late', { requestId: request.id }, undefined);
      });
    } catch (error) {
      this.live?.forget(request);
      throw error;
    } finally {
      // An abort that comes later is none of the handler's business.
      scope.close();
    }
  }

  /**
   * The first answer in the inbox counts, whoever gave it: one of this process (`own`) gets in line there, and `late` is
   * called if it was not the first.
   */
  private async decide(
    call: Call,
    request: PendingRequest,
    own?: Admitted,
    late?: () => void,
  ): Promise<Decision | undefined> {
    const { run } = this;
    const { store, sessionId, clock } = run;
    const postId = own && randomId();
    const found = await this.reached(async () => {
      if (own) {
        const at = Math.min(clock.now(), request.createdAt + (request.timeoutMs ?? Number.POSITIVE_INFINITY));
        const { decision } = own;
        await post(store, sessionId, {
          type: 'answer',
          requestId: request.id,
          decision,
          at,
          postId: postId!,
          // A sub-agent is answered by its caller.
          ...(run.depth > 0 && { relayed: true }),
        });
      }
      return posted(store, run.state);
    });
    const first = firstAnswer(found, request, clock.now()) ?? (own && { decision: own.decision, postId });
    if (!first) return undefined;
    if (own && first.postId === postId) return this.takeIn(call, request, own, first, found);
    late?.();
    return this.takeIn(call, request, await admit(run, request, first.decision), first, found);
  }

  /** That the store fails is nobody's answer. */
  private async reached(look: () => Promise<readonly Posted[]>): Promise<readonly Posted[]> {
    try {
      return await look();
    } catch (error) {
      throw this.run.surrender(error);
    }
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
   * By the journal a call that asks has not begun. One that asked in the middle of its work goes on with it, and is in
   * doubt again from here.
   */
  private goingOn(call: Call): readonly EntryDraft[] {
    if (call.phase !== 'running' || inDoubtPolicy(call.ctx.tool) !== 'fail') return [];
    return [startOf(this.run.runId, this.batch.message.id, call.toolCall.id)];
  }

  // ── The journal ────────────────────────────────────────────────────────────────────────────────────────────

  /** Tells what calls wait for, once it is journaled. */
  tellAll(calls: readonly Call[]): void {
    for (const call of calls) if (call.pending) this.tell(call, call.pending);
  }

  private tell(call: Call, pending: readonly PendingRequest[]): void {
    const news = pending.filter(({ id }) => !this.told.has(id));
    for (const { id } of news) this.told.add(id);
    waits(call, news);
  }

  private async write(request: PendingRequest): Promise<void> {
    this.post(request);
    await this.flush();
  }

  post(request: PendingRequest): void {
    const { requests, batch } = this.run.open;
    // A call that began anew to ask again is at work by the journal, until it is written that it asks.
    if (requests.has(request.id) && !batch?.started.includes(request.callId)) return;
    if (this.entries.some((entry) => entry.type === 'request' && entry.request.id === request.id)) return;
    const { runId } = this.run;
    const replaces = requests.has(request.id) ? [] : this.replacedBy(request);
    this.entries.push({ type: 'request', runId, request, ...(replaces.length > 0 && { replaces }) });
  }

  /** Before a call begins one question about it is open. If there is another, the schema has changed since it was asked. */
  private replacedBy({ id, kind, from, callId }: PendingRequest): string[] {
    const call = this.batch.open.find(({ toolCall }) => toolCall.id === callId);
    if (kind !== 'ask' || from || call?.phase !== 'judging') return [];
    return [...this.run.open.requests.values()]
      .filter((other) => other.callId === callId && other.kind === 'ask' && !other.from && other.id !== id)
      .map((other) => other.id);
  }

  async flush(): Promise<void> {
    if (this.entries.length === 0) return;
    const { entries } = this;
    this.entries = [];
    const wait = this.run.append(entries);
    if (isThenable(wait)) await wait;
  }
}

/** What a question counts as that nobody has answered in time. */
function lapsed({ timeoutMs }: PendingRequest): {
  readonly decision: Decision & { readonly type: 'reject' };
} {
  return { decision: { type: 'reject', reason: `Nobody answered within ${timeoutMs} ms.` } };
}
