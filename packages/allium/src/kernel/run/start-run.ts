/** The beginning of a run: loads the session, then starts a run or finds the one to resume. */

import { endAnswered, endChildren, turnOf } from '../calls/end-children.js';
import { tellUnanswered } from '../calls/tool-results.js';
import { isAsked, unanswered } from '../calls/unanswered.js';
import {
  type Answer,
  cameTooLate,
  checkEdit,
  checkFits,
  firstAnswers,
  unknownRequest,
} from '../inbox/answers.js';
import { claim } from '../inbox/claims.js';
import { posted, type QueuedMessage, queued, tookAnswers } from '../inbox/inbox.js';
import { answerEntry, isJudged } from '../inbox/judge-answers.js';
import { post } from '../inbox/posting.js';
import { isAnswered } from '../journal/history.js';
import { Journal } from '../journal/journal.js';
import type { OpenRun } from '../journal/journaled-run.js';
import { anotherOpen, nothingOpen } from '../journal/not-open.js';
import { catchUp } from '../journal/read-session.js';
import { type ComposedPlan, reportingPlan } from '../layers/onion.js';
import { AlliumError, storeFailed } from '../lib/errors.js';
import { type Flaw, toJson } from '../lib/frozen-json.js';
import { canonicalJson } from '../lib/hash.js';
import { randomId } from '../lib/random-id.js';
import { costSum, type Metadata } from '../messages/messages.js';
import { Budget } from '../model/budget.js';
import { readEnough } from '../plan/enough-history.js';
import type { AgentEvent } from '../protocol/events.js';
import { type Limits, limitsToJson } from '../protocol/limits.js';
import type { Plan } from '../protocol/middleware.js';
import { kernelStop } from '../protocol/signals.js';
import type { Stop } from '../protocol/stop.js';
import { type Awaitable, ENTRY_VERSION, type EntryDraft, type Posted } from '../protocol/store.js';
import { statesBelow } from './result-state.js';
import { Run } from './run.js';
import type { Start } from './start.js';

/** Loads the session and starts a run in it, or finds the one to resume. */
export function beginRun(start: Start): Awaitable<Run> {
  try {
    const read = catchUp(start.store, start.state);
    if (read) return read.then(() => planned(start), notBegun);
  } catch (error) {
    notBegun(error);
  }
  return planned(start);
}

/** There is no run yet, so no RunError either. */
function notBegun(error: unknown): never {
  throw storeFailed(error, ' before the run began');
}

/** With the plan it is known how much of the history has to be read. */
function planned(start: Start): Awaitable<Run> {
  const { agent, store, state, options, scope } = start;
  state.checkTenant(start.tenant);
  const above = options.inheritGuards === false ? undefined : start.parent?.plan;
  const plan = agent.planFor(options.middleware, above);
  if (!state.history.isPartial) return opened(start, plan, above);
  const traced = keepsTrace(start, state.open) || start.parent?.trace !== undefined || plan.traces;
  const read = readEnough(store, state, plan, { scope, traced });
  return read ? read.then(() => opened(start, plan, above), notBegun) : opened(start, plan, above);
}

function opened(start: Start, plan: ComposedPlan, above: Plan | undefined): Awaitable<Run> {
  const { agent, store, state, options, input } = start;
  const journal = new Journal(store, state, agent.clock);
  const metadata = options.metadata && toJson(options.metadata, 'metadata', notJson);
  const asked = state.open !== undefined && isAsked(state.open);
  if (input?.length === 0) return continued(start, plan, journal, metadata);
  if (!input)
    return reopen(journal, plan, start, above).then(async (named) => {
      const run = runOf(start, named, journal, metadata);
      run.asked = asked;
      const { history, sessionId, open } = state;
      await endAnswered(run, sessionId, open!).catch(notBegun);
      run.children.states = await statesBelow(store, sessionId, history.from(open!.from));
      return run;
    });
  // If it was aborted before it began, it writes nothing and ends nothing.
  if (!state.open || options.signal?.aborted) return newRun(start, plan, journal, metadata);
  return settleOpen(journal, start, plan).then(() => newRun(start, plan, journal, metadata), notBegun);
}

async function continued(
  start: Start,
  plan: ComposedPlan,
  journal: Journal,
  metadata: Metadata | undefined,
): Promise<Run> {
  const isHeard = await continuable(start);
  const run = newRun(start, plan, journal, metadata);
  // Its input is in the history already, so others may see from the start that it is under way.
  if (isHeard && !start.options.signal?.aborted)
    try {
      await journal.append([]);
    } catch (error) {
      notBegun(error);
    }
  return run;
}

/** Throws unless there is something to continue with, or to compact. True if the history ends with it. */
async function continuable({ state, store, compacts }: Start): Promise<boolean> {
  const { open, history, sessionId } = state;
  if (open)
    throw new AlliumError(
      'RUN_OPEN',
      `Run "${open.runId}" of session "${sessionId}" has not ended. Continue it with resume(), or end it and start another with run(message).`,
      { data: { sessionId, runId: open.runId } },
    );
  if (compacts || !isAnswered(history)) return !compacts;
  let waiting: readonly QueuedMessage[];
  try {
    waiting = await queued(store, state);
  } catch (error) {
    notBegun(error);
  }
  if (waiting.length > 0) return false;
  const why = history.length === 0 ? 'has no messages' : 'ends with an answer';
  throw new AlliumError(
    'NOTHING_TO_CONTINUE',
    `Session "${sessionId}" ${why}, and no message is waiting, so there is nothing to continue. Send a message with run(), or go back with rewind() first.`,
    { data: { sessionId } },
  );
}

function newRun(start: Start, plan: ComposedPlan, journal: Journal, metadata: Metadata | undefined): Run {
  const { agent, tenant, options } = start;
  const entry: { -readonly [K in keyof RunStart]: RunStart[K] } = {
    v: ENTRY_VERSION,
    at: 0,
    type: 'run_start',
    runId: options.runId ?? `r_${agent.newId()}`,
    plan: plan.names,
  };
  if (plan.twins) entry.twins = plan.twins;
  if (tenant !== undefined) entry.tenant = tenant;
  if (options.parent) entry.parent = options.parent.runId;
  if (metadata) entry.metadata = metadata;
  if (options.limits) entry.limits = limitsToJson(options.limits);
  journal.begin(entry);
  return runOf(start, plan, journal, metadata);
}

function notJson(option: string, { at, what }: Flaw): AlliumError {
  return new AlliumError(
    'INVALID_OPTION',
    `Expected \`${option}\` to be JSON, got ${what}${at && ` at ${at}`}. It is stored with the run.`,
    { data: { option } },
  );
}

type RunStart = EntryDraft & { readonly type: 'run_start' };

function runOf(start: Start, plan: ComposedPlan, journal: Journal, metadata: Metadata | undefined): Run {
  const { agent, state, input } = start;
  const open = state.open!;
  const limits = limitsOf(start);
  const budget = new Budget(limits, agent.priceOf, sessionBudget(start) ?? start.parent?.budget);
  budget.start(open.usage, open.costUsd);
  const given = input ? (metadata ?? {}) : { ...(open.metadata as Metadata | undefined), ...metadata };
  const keeps = keepsTrace(start, open);
  const traced = keeps || start.parent?.trace || plan.traces ? { keeps } : undefined;
  const own = traced ? reportingPlan(plan, agent._tracer) : plan;
  const run = new Run(start, own, journal, limits, budget, given, traced);
  const { depth: maxDepth = MAX_DEPTH } = limits;
  if (run.depth > maxDepth)
    run.call.latch(kernelStop('max_depth', `Sub-agents may nest ${maxDepth} deep.`), 'kernel');
  return run;
}

/** Is the trace kept with the journal? A sub-agent follows its caller, and a resumed run stays as it began. */
function keepsTrace({ agent, options, parent }: Start, open: OpenRun | undefined): boolean {
  const began = parent?.trace?.keeps || (open && open.trace.length > 0);
  const { trace: mode = began ? 'changes' : agent.trace } = options;
  return mode === 'changes';
}

/** What the session has left, if it has limits. */
function sessionBudget({ agent, state, parent }: Start): Budget | undefined {
  const { tokens, costUsd } = agent.sessionLimits;
  if (tokens === undefined && costUsd === undefined) return undefined;
  const budget = new Budget(agent.sessionLimits, agent.priceOf, parent?.budget);
  const { usage, costUsd: spent } = state.open!;
  // Runs that have ended, and this one so far.
  budget.start(state.usage, state.costUsd);
  budget.start(usage, costSum(state.costUsd, spent));
  return budget;
}

/** How deep sub-agents may nest by default. */
const MAX_DEPTH = 8;

function limitsOf({ agent, options, input, state, parent }: Start): Limits {
  // A resumed run keeps the limits it was started with.
  const begun = input ? undefined : state.open!.limits;
  const limits = begun || options.limits ? { ...agent.limits, ...begun, ...options.limits } : agent.limits;
  const above = parent?.limits.depth;
  // A sub-agent may not nest deeper than its caller allows.
  return above === undefined ? limits : { ...limits, depth: Math.min(above, limits.depth ?? MAX_DEPTH) };
}

/**
 * Checks that a run can be resumed here and takes over the answers that nobody has to judge. The others are judged inside
 * the run, which finds them in the inbox. Returns the plan it goes on with.
 */
async function reopen(
  journal: Journal,
  composed: ComposedPlan,
  start: Start,
  above: Plan | undefined,
): Promise<ComposedPlan> {
  const { agent, options } = start;
  const { open } = journal.state;
  if (!open) throw nothingOpen(journal.state);
  const { runId = open.runId } = options;
  if (runId !== open.runId) throw anotherOpen(journal.state, runId);
  const plan = agent.resumedPlan(open, composed, options, above);
  const own = await postAnswers(start, plan, open);
  const { found, answers } = await postedAnswers(start, open);
  const late = [...own].find(([requestId, postId]) => answers.get(requestId)?.postId !== postId);
  // A sub-agent may have been answered directly before the answer came through its caller: then that one counts.
  if (late && !options.parent) throw cameTooLate(late[0], []);
  const plain = new Map([...answers].filter(([, { decision }]) => !isJudged(plan, decision)));
  if (plain.size === 0) return plan;
  const entries = [...plain].map(([requestId, answer]) => answerEntry(open.runId, requestId, answer));
  try {
    await journal.append([...entries, tookAnswers(found, plain)]);
  } catch (error) {
    notBegun(error);
  }
  return plan;
}

interface Answered {
  readonly found: readonly Posted[];
  readonly answers: ReadonlyMap<string, Answer>;
}

async function postedAnswers({ store, state, agent }: Start, { requests }: OpenRun): Promise<Answered> {
  try {
    const found = await posted(store, state);
    return { found, answers: firstAnswers(found, requests, agent.clock.now()) };
  } catch (error) {
    notBegun(error);
  }
}

/**
 * Answers that come with a resume get in line behind those that were posted: the first one counts. Either all are
 * taken or none: a wrong answer beside good ones changes nothing. Returns the ids of the posts by request.
 */
async function postAnswers(
  start: Start,
  plan: ComposedPlan,
  open: OpenRun,
): Promise<ReadonlyMap<string, string>> {
  const { options, agent, store, state } = start;
  const given = Object.entries(options.answers ?? {});
  const ids = new Map<string, string>();
  if (given.length === 0) return ids;
  const { answers: before } = await postedAnswers(start, open);
  const now = agent.clock.now();
  for (const [requestId, decision] of given) {
    const request = open.requests.get(requestId);
    const first = before.get(requestId);
    // A resume that is tried again with the same answers brings nothing new.
    if (first && (options.parent || canonicalJson(first.decision) === canonicalJson(decision))) continue;
    const others = [...open.requests.values()].filter(({ id }) => !before.has(id));
    if (first || open.decided?.answers.has(requestId)) throw cameTooLate(requestId, others);
    if (!request) throw unknownRequest(requestId, others);
    // An answer that comes through the caller was in time when the caller took it.
    checkFits(request, decision, options.parent ? request.createdAt : now, options.parent !== undefined);
    // Nobody could correct the answers that a sub-agent gets from its caller.
    if (!options.parent) await checkEdit(plan, open, request, decision);
    ids.set(requestId, randomId());
  }
  try {
    for (const [requestId, postId] of ids) {
      const request = open.requests.get(requestId)!;
      const relayed = options.parent !== undefined;
      // A relayed answer was claimed by the caller.
      if (!relayed) await claim(store, state.sessionId, request);
      const at = relayed ? request.createdAt : now;
      const decision = options.answers![requestId]!;
      const answer = { type: 'answer', requestId, decision, at, postId } as const;
      await post(store, state.sessionId, relayed ? { ...answer, relayed } : answer);
    }
  } catch (error) {
    notBegun(error);
  }
  return ids;
}

/**
 * A new message ends what was left open: every pending call gets a visible result before the history continues. Observers
 * of the agent hear of it, as they heard that the calls began; the stream of the new run has only its own events.
 */
async function settleOpen(
  journal: Journal,
  { agent, store, forgets }: Start,
  { tools }: Plan,
): Promise<void> {
  const open = journal.state.open!;
  const { runId, turns, batch } = open;
  const { sessionId } = journal.state;
  const stop: Stop = { reason: 'stopped', message: 'A new message came.' };
  await endChildren({ store, agent, forgets }, sessionId, turnOf(open));
  const results = unanswered(open, 'a new message came before this call was settled.', tools, agent);
  await journal.append([...results, { type: 'run_end', runId, status: 'stopped', stop, turns }]);
  const watched = agent._feeds.length > 0;
  const emit = (event: AgentEvent): void => {
    for (const feed of agent._feeds) feed.push(event);
  };
  if (batch) tellUnanswered({ runId, sessionId, turn: turns, watched, emit }, batch, results);
}
