/** Takes messages into the history: from outside, through guards and `acceptMessage`, or from middleware. */

import type { Overlay } from '../context/cells.js';
import { RunContext, type Taken } from '../context/context.js';
import { judgeMessage } from '../guards/content-guards.js';
import { judgeTexts, latching, safeErrorMessage } from '../guards/guards.js';
import { type Refusal, stopFor } from '../guards/refusal.js';
import { safeValue } from '../guards/safe-values.js';
import { AlliumError, shown } from '../lib/errors.js';
import { isJson } from '../lib/frozen-json.js';
import { textsOfValue } from '../lib/json-texts.js';
import { checkMessage, misplacedIn, placed } from '../messages/message-input.js';
import {
  freezeMessage,
  isSyntheticMessage,
  type Message,
  NOTHING,
  userMessage,
} from '../messages/messages.js';
import * as rules from '../plan/rules.js';
import type { Plan, PlannedGuard } from '../protocol/middleware.js';
import { isKernelStop, StopRun } from '../protocol/signals.js';
import type { Awaitable, EntryBody, EntryDraft } from '../protocol/store.js';
import type { Due, InboxEntry, PostedMessage } from './inbox.js';
import type { InboxRun } from './inbox-run.js';
import { PendingInput } from './pending-input.js';

/** A message as guards and hooks left it. Their writes to cells count once the message is taken in. */
export interface Admission {
  readonly message: Message;
  readonly written?: Overlay | undefined;
}

/** Takes in the input of a run: all of it, or the run stops. */
export function acceptInput(
  run: InboxRun,
  ctx: RunContext,
  entries: readonly EntryBody[] = [],
): Awaitable<void> {
  const { input, _taken: taken } = ctx;
  // Run layers may have assigned it. Otherwise it was checked before.
  const given = run.plan.layers.run.length === 0 ? input : checkAssigned(input);
  if (!judgesMessages(run.plan)) return appendInput(run, given, entries, taken);
  return judgeInput(run, given, entries, taken).catch((error) => {
    // If it is refused, nobody may see it afterwards.
    if (taken) taken.input = [];
    throw error;
  });
}

async function judgeInput(
  run: InboxRun,
  given: readonly Message[],
  entries: readonly EntryBody[],
  taken: Taken | undefined,
): Promise<void> {
  const { input } = run.plan.guards;
  const beside = input.filter(({ guard }) => guard.parallel);
  const first = beside.length === 0 ? input : input.filter(({ guard }) => !guard.parallel);
  const admitted = await judgeAll(run, given, first);
  const take = () => appendInput(run, takenIn(run, admitted), entries, taken);
  if (beside.length === 0 || given.length === 0) return take();
  const number = run.open.count + 1;
  const messages = admitted.map(({ message }, i) => placed(message, run.messageId(number + i)));
  run.pendingInput = new PendingInput(run, messages, admitted.at(-1)?.written, beside, async () => {
    try {
      await take();
    } catch (error) {
      if (taken) taken.input = [];
      throw error;
    }
  });
  // Inbox entries are written with the input, and the inbox is read again soon.
  if (entries.length > 0) await run.pendingInput.allowed();
}

function checkAssigned(input: readonly Message[]): readonly Message[] {
  if (!Array.isArray(input))
    throw new AlliumError(
      'INVALID_MESSAGE',
      `Expected \`ctx.input\` to be a list of messages, got ${shown(input)}.`,
    );
  return input.map(checkMessage);
}

async function judgeAll(
  run: InboxRun,
  given: readonly Message[],
  guards: readonly PlannedGuard[],
): Promise<readonly Admission[]> {
  const accepted: Admission[] = [];
  for (const message of given) {
    const answer = await judgeIncoming(run, message, given, accepted.at(-1)?.written, guards);
    if ('reason' in answer) {
      const stop = new StopRun('guardrail', answer.reason);
      run.call.latch(stop, answer.by);
      throw stop;
    }
    accepted.push(answer);
  }
  return accepted;
}

function appendInput(
  run: InboxRun,
  accepted: readonly Message[],
  entries: readonly EntryBody[],
  taken: Taken | undefined,
): Awaitable<void> {
  if (taken) taken.input = accepted;
  const problem = misplacedIn(accepted);
  if (problem) throw new AlliumError('INVALID_MESSAGE', `The input cannot be appended: ${problem}`);
  return appendMessages(run, accepted, entries);
}

/**
 * Takes in steering and follow-ups, and returns how many. Refused ones leave the inbox and are reported. So does one that
 * stops or fails the run, or it would stop every later run too; those after it keep waiting.
 */
export async function acceptQueued(run: InboxRun, { messages, entries }: Due): Promise<number> {
  let [entry] = entries;
  const given = messages.map(({ item }) => item.message);
  const accepted: Admission[] = [];
  const refused: (Refusal & { readonly n: number })[] = [];
  let ended: { readonly error: unknown } | undefined;
  for (let i = 0; i < messages.length && !ended; i++) {
    const { n } = messages[i]!;
    try {
      const answer = await admitted(run, given[i]!, given, accepted.at(-1)?.written);
      if ('message' in answer) accepted.push(answer);
      else refused.push({ n, ...answer });
    } catch (error) {
      // Not the message's fault.
      if (run.scope.aborted || isKernelStop(error)) throw error;
      ended = { error };
      refused.push({ n, ...refusalOf(run, error) });
      entry = withWaiting(entry, messages.slice(i + 1));
    }
  }
  const taken = refused.length > 0 ? { ...entry, refused } : entry;
  await appendMessages(run, takenIn(run, accepted), [taken]);
  for (const one of refused) tellRefusal(run, one);
  if (ended) throw ended.error;
  return accepted.length;
}

async function admitted(
  run: InboxRun,
  message: Message,
  given: readonly Message[],
  before: Overlay | undefined,
): Promise<Admission | Refusal> {
  const answer = judgesMessages(run.plan) ? await judgeIncoming(run, message, given, before) : { message };
  const problem = 'message' in answer ? misplacedIn([answer.message]) : undefined;
  return problem ? { reason: problem, by: 'kernel' } : answer;
}

/** Who stopped or failed the run because of a message, and why, without what guards remove. */
function refusalOf(run: InboxRun, error: unknown): Refusal {
  const { call } = run;
  const by = call.latched === error ? call.latchedBy : call.raisedBy(error)?.middleware;
  const ctx = new RunContext(run, run.scope, []);
  return { reason: safeErrorMessage(error, ctx), by: by ?? 'kernel' };
}

function withWaiting(entry: InboxEntry, messages: readonly PostedMessage[]): InboxEntry {
  const waits = [...(entry.waits ?? []), ...messages.map(({ n }) => n)].sort((a, b) => a - b);
  return waits.length === 0 ? entry : { ...entry, waits };
}

export function tellRefusal(run: InboxRun, { reason: given, by }: Refusal): void {
  const reason = safeValue(given, run) ?? 'the reason is withheld.';
  run.note(by, `refused a message: ${reason}`, 'blocked');
  run.emitCustom('message_refused', { reason }, by);
}

export function judgesMessages({ guards, rules: planned }: Plan): boolean {
  return guards.input.length > 0 || planned.acceptMessage.length > 0;
}

/** The messages for the next append. What hooks wrote to cells goes into the same append. */
function takenIn(run: InboxRun, admitted: readonly Admission[]): readonly Message[] {
  return admitted.map(({ message, written }) => {
    if (written) run.cells.stage(written);
    return message;
  });
}

/** Runs guards and `acceptMessage` on one message from outside. `before`: cell writes about the previous message. */
export async function judgeIncoming(
  run: InboxRun,
  message: Message,
  given: readonly Message[],
  before?: Overlay,
  guards: readonly PlannedGuard[] = run.plan.guards.input,
): Promise<Admission | Refusal> {
  const { rules: planned } = run.plan;
  let ctx = new RunContext(run, run.scope, given);
  if (before) ctx._state = before.inner();
  let current = message;
  if (guards.length > 0) {
    const { owner, deny } = await judgeMessage('input', message, ctx, guards);
    if (deny) return deny;
    // Frozen: an edit in place would bypass the guards.
    current = freezeMessage(owner);
  }
  if (planned.acceptMessage.length > 0) {
    const answer = await rules.acceptMessage(planned.acceptMessage, current, ctx);
    if ('block' in answer) return { reason: answer.block, by: answer.by };
    // A message that a hook changed is judged like one from outside, in another context: guards may remember what they
    // put into the first one.
    if (answer.message !== current && guards.length > 0) {
      const { _state } = ctx;
      ctx = new RunContext(run, run.scope, given);
      ctx._state = _state;
      const { owner, deny } = await judgeMessage('input', answer.message, ctx, guards);
      if (deny) return deny;
      current = owner;
    } else current = answer.message;
  }
  return { message: current, written: ctx._state };
}

/** Judges messages of middleware like input, because they may quote anything. Refused ones are left out and reported. */
export async function judgeInjected(
  run: InboxRun,
  given: readonly rules.Injected[],
): Promise<readonly rules.Injected[]> {
  if (given.length === 0 || run.plan.guards.input.length === 0) return given;
  const ctx = new RunContext(run, run.scope, NOTHING);
  const left: rules.Injected[] = [];
  for (const { message, by } of given) {
    const { owner, deny } = await latching(ctx, () => judgeMessage('input', message, ctx));
    if (deny) tellRefusal(run, deny);
    else left.push({ message: freezeMessage(owner), by });
  }
  return left;
}

/**
 * Judges the options of middleware like input, before any hook reads them: they come from outside and may become messages.
 * If one is refused, the run ends before its layers start.
 */
export async function judgeOptions(run: InboxRun, ctx: RunContext): Promise<void> {
  const { input: guards } = run.plan.guards;
  const options: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(run.options)) {
    const said = textsOfValue(typeof value !== 'number' && isJson(value) ? value : undefined);
    const message = userMessage(said.texts.flat().join('\n'));
    options[name] = value;
    if (said.texts.length === 0) continue;
    const { texts, deny } = await latching(ctx, () =>
      judgeTexts(guards, { point: 'input', message }, said.texts, ctx),
    );
    if (deny) throw stopFor(deny, ctx);
    if (texts !== said.texts) options[name] = said.put(texts);
  }
  run.options = Object.freeze(options);
}

/** Marks user messages of middleware as synthetic: nobody typed them. */
export function stamped(messages: readonly rules.Injected[]): readonly Message[] {
  return messages.map(({ message, by }) => {
    if (message.role !== 'user' || isSyntheticMessage(message)) return message;
    return { ...message, metadata: { ...message.metadata, synthetic: true, source: by } };
  });
}

/**
 * Appends all messages at once, together with `entries`, so that a crash loses both or neither. `why`: what they count as.
 * Feedback follows an answer that had a number but isn't journaled.
 */
export function appendMessages(
  run: InboxRun,
  given: readonly Message[],
  entries: readonly EntryBody[] = [],
  why?: 'cycle' | 'feedback',
): Awaitable<void> {
  const { runId } = run;
  const first = run.open.count + (why === 'feedback' ? 2 : 1);
  const messages = given.map((message, i) => placed(message, run.messageId(first + i)));
  const added = messages.map((message) => entryOf(runId, message));
  if (why) added[0] = { ...added[0]!, [why]: true } as EntryDraft;
  const wait = run.append([...entries, ...added]);
  if (wait) return wait.then(() => emitMessages(run, messages));
  emitMessages(run, messages);
}

function emitMessages(run: InboxRun, messages: readonly Message[]): void {
  const { runId, sessionId, watched } = run;
  if (!watched) return;
  for (const message of messages) {
    if (message.role === 'tool') continue;
    run.emit({ type: 'message_start', runId, sessionId, messageId: message.id, role: message.role });
    run.emit({ type: 'message_end', runId, sessionId, messageId: message.id, message });
  }
}

function entryOf(runId: string, message: Message): EntryDraft {
  if (message.role === 'tool') return { type: 'tool_finished', runId, message };
  return { type: 'message', runId, message, ...(message.role === 'assistant' && { seeded: true }) };
}
