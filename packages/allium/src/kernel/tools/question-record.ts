/** Journals the questions of a batch and reports them. */

import { hashOf, shownArguments } from '../calls/tool-arguments.js';
import type { Call, CallBatch } from '../calls/tool-call.js';
import { reportWaiting } from '../calls/tool-results.js';
import type { ToolsRun } from '../calls/tools-run.js';
import type { ToolContext } from '../context/context.js';
import { deepFreeze } from '../messages/messages.js';
import type { Decision, EntryBody, PendingRequest, Request } from '../protocol/store.js';

export class QuestionRecord {
  /** Verdicts and questions that wait to be written. */
  entries: EntryBody[] = [];
  protected readonly run: ToolsRun;
  /** Ids of questions that were reported. */
  private readonly told = new Set<string>();

  constructor(protected readonly batch: CallBatch) {
    this.run = batch.runner;
  }

  /** The id names the call and its arguments, so an answer is found after a resume and never serves other arguments. */
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
    return deepFreeze({
      ...request,
      // JSON has no infinity, so a question that never lapses has no `timeoutMs`.
      ...(Number.isFinite(timeoutMs) && { timeoutMs }),
      id,
      runId,
      callId: call.toolCall.id,
      toolName: ctx.toolCall.name,
      arguments: JSON.stringify(ctx._input.raw ?? null),
      effectiveArguments: await shownArguments(ctx),
      kind,
      hash,
      ...(by && { by }),
      createdAt: clock.now(),
    });
  }

  private prefixOf({ index }: Call, kind: PendingRequest['kind']): string {
    return `${this.batch.message.id}.${index}.${kind}`;
  }

  /** The arguments that a person last wrote for this call, whatever became of those that were asked about. */
  editOf(call: Call): (Decision & { readonly type: 'edit' }) | undefined {
    const prefix = `${this.prefixOf(call, 'ask')}.`;
    let last: (Decision & { readonly type: 'edit' }) | undefined;
    for (const [id, { decision }] of this.run.open.decided?.answers ?? [])
      if (id.startsWith(prefix) && decision.type === 'edit') last = decision;
    return last;
  }

  /** Reports what calls wait for, once it is journaled. */
  reportAll(calls: readonly Call[]): void {
    for (const call of calls) if (call.pending) this.reportPending(call, call.pending);
  }

  protected reportPending(call: Call, pending: readonly PendingRequest[]): void {
    const news = pending.filter(({ id }) => !this.told.has(id));
    for (const { id } of news) this.told.add(id);
    reportWaiting(call, news);
  }

  protected async write(request: PendingRequest): Promise<void> {
    this.stage(request);
    await this.flush();
  }

  /** The question is written with the next flush, unless the journal has it. */
  stage(request: PendingRequest): void {
    const { requests, batch } = this.run.open;
    const { runId } = this.run;
    const isOpen = requests.has(request.id);
    // A call that started over in order to ask again counts as begun until the journal says that it asks.
    if (isOpen && !batch?.started.includes(request.callId)) return;
    if (this.entries.some((entry) => entry.type === 'request' && entry.request.id === request.id)) return;
    const replaces = isOpen ? [] : this.replacedBy(request);
    this.entries.push({ type: 'request', runId, request, ...(replaces.length > 0 && { replaces }) });
  }

  /** Before a call begins, one question about it is open. If there is another, the schema has changed since. */
  private replacedBy({ id, kind, from, callId }: PendingRequest): string[] {
    const call = this.batch.open.find(({ toolCall }) => toolCall.id === callId);
    if (kind !== 'ask' || from || call?.phase !== 'judging') return [];
    return [...this.run.open.requests.values()]
      .filter((other) => other.callId === callId && other.kind === 'ask' && !other.from && other.id !== id)
      .map((other) => other.id);
  }

  /** Questions that calls asked when they ran before: they have begun anew, and ask these now. */
  outdatedBy(pending: readonly PendingRequest[]): string[] {
    const calls = pending.map(({ callId }) => callId);
    const asked = pending.map(({ id }) => id);
    return [...this.run.open.requests.values()]
      .filter(({ key, callId, id }) => key !== undefined && calls.includes(callId) && !asked.includes(id))
      .map(({ id }) => id);
  }

  async flush(): Promise<void> {
    const { entries } = this;
    if (entries.length === 0) return;
    this.entries = [];
    await this.run.append(entries);
  }
}
