/** The state of a session, computed from its journal. Entries are applied the same way, whether just written or read back. */

import { AlliumError, shown } from '../lib/errors.js';
import {
  type AssistantContent,
  costSum,
  NO_USAGE,
  NOTHING,
  type ToolCall,
  toolCallsOf,
  type Usage,
  UsageTotal,
} from '../messages/messages.js';
import { type CellHolder, storedIn } from '../protocol/state.js';
import type { EntryBody, NewEntry } from '../protocol/store.js';
import { type Allowed, allowing, revoking } from './allowances.js';
import { changing } from './changed-calls.js';
import { History } from './history.js';
import { decided, idsOf, NO_PLAN, NO_REQUESTS, newRun, type OpenRun, startedIn } from './journaled-run.js';
import { spentIn } from './spent.js';

/** Entries between two snapshots, at least: reading so many is quick. */
export const FEWEST_BETWEEN = 256;

export class SessionState implements CellHolder {
  seq = 0;
  /** The last entry. If the store has another one with its number, the session was deleted and this state is void. */
  last: NewEntry | undefined = undefined;
  /** How many reads of the journal into this state are in progress. */
  reading = 0;
  tenant: string | undefined;
  /** May begin after a snapshot. `readBack` and `readHistory` read the messages before it. */
  history = new History();
  /** The last entry that a snapshot is known to cover, and how many more are written before the next one. */
  snapshotAt = 0;
  snapshotAfter = FEWEST_BETWEEN;
  cells: CellHolder['cells'] = undefined;
  /** The cells of the run that ended last. */
  lastCells: CellHolder['cells'] = undefined;
  readonly callIds = new Set<string>();
  inboxCursor = 0;
  /** Numbers of inbox items before the cursor that still wait. */
  waits: readonly number[] = NOTHING;
  /** Some answer is empty or holds what can't be sent back, such as thinking that a guard rewrote. */
  withheld = false;
  /** What people approved for the rest of the session. */
  allowed: Allowed | undefined = undefined;
  /** Ids of answered calls whose arguments a person changed. */
  changedCalls: ReadonlySet<string> | undefined = undefined;
  open: OpenRun | undefined;
  /** How the last run ended. */ ended: (EntryBody & { readonly type: 'run_end' }) | undefined;
  turns = 0;
  toolCalls = 0;
  /** What the runs that have ended used. */
  readonly usage = new UsageTotal();
  costUsd: number | undefined = 0;

  constructor(readonly sessionId: string) {}

  /** Throws unless the session is this tenant's. A session without a run belongs to nobody yet. */
  checkTenant(tenant: string | undefined): this {
    if (this.tenant === tenant || (this.seq === 0 && !this.open)) return this;
    throw new AlliumError(
      'TENANT_MISMATCH',
      `Session "${this.sessionId}" belongs to tenant ${shown(this.tenant)}, not ${shown(tenant)}. The tenant is the agent's, or the one of agent.session(id, { tenant }).`,
    );
  }

  /** Starts over, as if nothing had been read. */
  forget(): void {
    const { reading } = this;
    Object.assign(this, new SessionState(this.sessionId), { reading });
  }

  /** Call ids must be unique in a session. Missing and repeated ones are replaced, the same way each time. */
  callId(id: string, messageId: string, block: number, content: readonly AssistantContent[]): string {
    // Nobody knows the ids in messages that were not read.
    const comparable = id !== '' && !this.history.isPartial;
    if (comparable && !this.callIds.has(id) && !hasCall(content, id, block)) return id;
    let made = `${messageId}.call${block}`;
    // The model may have used that very id.
    while (this.callIds.has(made) || hasCall(content, made, content.length)) made += '_';
    return made;
  }

  /** Takes an entry in. Entries come in order and exactly once. */
  apply(entry: NewEntry): void {
    switch (entry.type) {
      case 'run_start':
        if (this.seq <= 1) this.tenant = entry.tenant;
        this.open = newRun(entry, this.history.length);
        return;
      case 'message':
        this.takeMessage(this.running(entry), entry);
        return;
      case 'tool_started':
        startedIn(this.running(entry), entry.callId);
        return;
      case 'tool_finished':
        this.finished(this.running(entry), entry);
        return;
      case 'state': {
        const { cell, version, value, stays } = entry;
        const held = stays ? { version, value, stays } : { version, value };
        storedIn(entry.runId === undefined ? this : this.running(entry)).set(cell, held);
        return;
      }
      case 'request':
        addRequest(this.running(entry), entry);
        return;
      case 'answer':
        this.answered(this.running(entry), entry);
        return;
      case 'verdict':
        decided(this.running(entry)).verdicts.set(`${entry.callId}\n${entry.hash}`, entry.verdict);
        return;
      case 'usage':
        this.spent(this.running(entry), entry);
        return;
      case 'active':
        this.running(entry).activeMs = entry.ms;
        return;
      case 'trace':
        this.running(entry).trace.push(entry);
        return;
      case 'inbox':
        this.inboxCursor = entry.cursor;
        this.waits = entry.waits ?? NOTHING;
        if (entry.revoked) this.allowed = revoking(this.allowed, entry.revoked);
        return;
      case 'rewind':
        this.history = this.history.upTo(entry.to);
        this.cells = staying(this.cells);
        return;
      case 'run_end':
        if (this.open) this.close(this.open);
        this.ended = entry;
        return;
      default:
        throw corrupt(
          this,
          `holds an entry of unknown type ${JSON.stringify((entry as { type?: unknown }).type)} after entry ${this.seq}.`,
          'It was written by a newer release, so update this one; or it is damaged, so restore it from a backup.',
        );
    }
  }

  private answered(run: OpenRun, entry: NewEntry & { readonly type: 'answer' }): void {
    const { requestId, decision } = entry;
    const request = run.requests.get(requestId);
    this.allowed = allowing(this.allowed, request, decision, entry.at);
    run.requests.delete(requestId);
    const about = decided(run);
    about.answers.set(requestId, entry);
    about.changed = changing(about.changed, requestId, request, decision);
  }

  private takeMessage(run: OpenRun, entry: EntryBody & { type: 'message' }): void {
    this.history.append(entry.message);
    run.count++;
    if (entry.cycle) run.cycles++;
    if (entry.feedback) {
      run.feedback++;
      run.count++;
    }
    // Injected messages belong to the turn. Any other message starts something new.
    if (run.inject.length > 0) run.injected = run.inject.length;
    run.inject = entry.inject ?? NOTHING;
    if (run.injected > 0) run.injected--;
    else run.answer = undefined;
    if (entry.message.role !== 'assistant') return;
    if (!entry.seeded) {
      run.answer = entry.message;
      run.follows = entry.follows ?? NO_PLAN;
      run.terminate = false;
      run.turns++;
      run.feedback = 0;
      run.cutOff = entry.message.stopReason === 'length' ? run.cutOff + 1 : 0;
      this.turns++;
      const { usage = NO_USAGE } = entry.message;
      this.spend(run, usage, usage.totalTokens === 0 ? 0 : entry.costUsd);
    }
    if (!this.withheld && holdsWithheld(entry.message.content)) this.withheld = true;
    const calls = toolCallsOf(entry.message);
    if (calls.length === 0) return;
    for (let i = 0; i < calls.length; i++) this.callIds.add(calls[i]!.id);
    run.batch = {
      message: entry.message,
      calls,
      results: calls.length === 1 ? [undefined] : new Array(calls.length).fill(undefined),
      answered: 0,
      terminating: 0,
      offered: entry.offered,
      started: entry.started ? idsOf(calls) : NOTHING,
      asked: NOTHING,
      spent: undefined,
    };
  }

  private finished(run: OpenRun, { message, terminate, stop }: EntryBody & { type: 'tool_finished' }): void {
    const { batch } = run;
    run.stop ??= stop;
    if (!batch)
      throw corrupt(this, `holds a result for call "${message.toolCallId}", but no such call was made.`);
    const place = placeOf(batch.calls, message.toolCallId);
    if (place < 0 || batch.results[place])
      throw corrupt(
        this,
        `holds a result for call "${message.toolCallId}", but that call was not made or already has its result.`,
      );
    batch.results[place] = message;
    if (terminate) batch.terminating++;
    run.toolCalls++;
    this.toolCalls++;
    if (++batch.answered < batch.calls.length) return;
    // Results arrive as tools finish; the history has them in the order of the calls.
    for (let i = 0; i < batch.results.length; i++) this.history.append(batch.results[i]!);
    run.count += batch.calls.length;
    run.terminate = batch.terminating === batch.calls.length;
    run.batch = undefined;
    if (run.decided?.changed)
      this.changedCalls = new Set([...(this.changedCalls ?? []), ...run.decided.changed.values()]);
    run.decided = undefined;
    if (run.requests.size > 0) run.requests.clear();
  }

  /** Usage may have no tokens: some calls don't report what they used. */
  private spend(run: OpenRun, usage: Usage, costUsd: number | undefined): void {
    if (usage === NO_USAGE) return;
    run.usage.add(usage);
    run.costUsd = costSum(run.costUsd, costUsd);
  }

  private spent(run: OpenRun, entry: EntryBody & { type: 'usage' }): void {
    this.spend(run, entry.usage, entry.costUsd);
    if (entry.from !== undefined && run.batch) spentIn(run.batch, entry.from).add(entry);
  }

  private close(run: OpenRun): void {
    this.open = undefined;
    this.lastCells = run.cells;
    this.usage.add(run.usage);
    this.costUsd = costSum(this.costUsd, run.costUsd);
  }

  private running(entry: EntryBody & { runId?: string }): OpenRun {
    if (this.open && this.open.runId === entry.runId) return this.open;
    throw corrupt(this, `holds an entry \`${entry.type}\` of run "${entry.runId}", which is not under way.`);
  }
}

/** What a rewind leaves of the session's cells. The values of the others follow it. */
function staying(cells: CellHolder['cells']): CellHolder['cells'] {
  const left = [...(cells ?? [])].filter(([, { stays }]) => stays);
  return left.length === 0 ? undefined : new Map(left);
}

/** A question is asked. Its tool has done nothing yet: it starts again after the answer, and is in doubt only then. */
function addRequest(
  run: OpenRun,
  { request, replaces, notBegun = NOTHING }: EntryBody & { type: 'request' },
): void {
  if (run.requests === NO_REQUESTS) run.requests = new Map();
  for (const id of replaces ?? NOTHING) run.requests.delete(id);
  run.requests.set(request.id, request);
  if (!run.batch) return;
  const { callId } = request;
  run.batch.started = run.batch.started.filter((id) => id !== callId && !notBegun.includes(id));
  run.batch.asked = [...new Set([...run.batch.asked, callId, ...notBegun])];
}

export function corrupt(
  { sessionId }: SessionState,
  what: string,
  advice = 'Restore it from a backup, or delete the session.',
): AlliumError {
  return new AlliumError('SESSION_CORRUPT', `Session "${sessionId}" ${what} ${advice}`, {
    data: { sessionId },
  });
}

/** What a provider wouldn't accept: thinking without its signature, and empty text, unless its metadata says something. */
export function isWithheld(part: AssistantContent): boolean {
  if (part.type === 'text') return part.text === '' && part.metadata === undefined;
  return part.type === 'thinking' && part.redacted === true && part.signature === undefined;
}

function placeOf(calls: readonly ToolCall[], id: string): number {
  return calls.findIndex((call) => call.id === id);
}

/** Is this the id of one of the calls before `end`? */
function hasCall(content: readonly AssistantContent[], id: string, end: number): boolean {
  for (let i = 0; i < end; i++) {
    const part = content[i]!;
    if (part.type === 'tool-call' && part.id === id) return true;
  }
  return false;
}

/** Does it have something that isn't sent back, or nothing at all? By index, because `some` is slow on frozen lists. */
export function holdsWithheld(content: readonly AssistantContent[]): boolean {
  for (let i = 0; i < content.length; i++) if (isWithheld(content[i]!)) return true;
  return content.length === 0;
}
