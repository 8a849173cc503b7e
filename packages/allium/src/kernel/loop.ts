/**
 * The loop. Read it from the top:
 *
 *   input → turn → turn → … → end
 *   turn: limits → transforms → model layers { model } → guards → afterModelResponse → append → tools → turn_end
 *
 * Every exit is either a returned Stop or something thrown: a control signal, an abort or an error. Whatever the
 * exit, each tool call has its result and each event that started has ended.
 */
import { type Context, ModelContext, RunContext, SeamCall, TurnContext } from './context.js';
import { controlKind, isThenable, StopRun } from './errors.js';
import { judgeMessage } from './guards.js';
import { drain, type Inbox } from './inbox.js';
import { enter } from './layers.js';
import { LiveMessage } from './live.js';
import { placed } from './message-input.js';
import { type AssistantMessage, isSyntheticMessage, type Message, type ModelResponse, NO_USAGE, type ToolMessage } from './messages.js';
import { callModel } from './model-call.js';
import type { Stop } from './result.js';
import * as rules from './rules.js';
import type { Run } from './run.js';
import type { EntryBody } from './store.js';
import { type BatchOutcome, runTools } from './tool-batch.js';

const MAX_CYCLES = 100;
const FINAL: Stop = Object.freeze({ reason: 'final' });

/** How a turn ended. `stop`: the run should end; `more`: the model is to be called again. */
interface TurnEnd {
  readonly message: AssistantMessage | undefined;
  readonly toolResults: readonly ToolMessage[];
  readonly more: boolean;
  readonly stop?: Stop;
  readonly suspended?: boolean;
}

/** Runs from the input, or from where the journal left off, to the end. */
export async function converse(run: Run, input: readonly Message[], inbox: Inbox): Promise<Stop> {
  let end: TurnEnd | undefined;
  if (run.resumed) end = await resumeTools(run);
  else await accept(run, input, 'input');
  for (let cycles = 0; ; ) {
    end ??= await turn(run);
    if (end.suspended) return { reason: 'suspended', message: 'The run waits for an answer.' };
    boundary(run);
    const stop = end.stop ?? (await shouldStop(run, end));
    if (!stop) {
      const due = await drain(run, inbox, end.more ? 'steer' : 'all');
      if (due) await accept(run, due.messages, 'queue', due.entries);
      boundary(run);
      if (end.more || (due && due.messages.length > 0)) {
        end = undefined;
        continue;
      }
    }
    const injected = await atRunEnd(run, end);
    if (injected.length === 0) return stop ?? FINAL;
    if (++cycles > MAX_CYCLES) return { reason: 'loop', message: `onRunEnd kept the run going ${MAX_CYCLES} times.`, by: 'kernel' };
    await inject(run, injected);
    end = undefined;
  }
}

async function turn(run: Run): Promise<TurnEnd> {
  checkLimits(run);
  run.turn++;
  if (run.watched) {
    run.emit({ type: 'turn_start', runId: run.runId, sessionId: run.sessionId, turn: run.turn });
    const wait = run.pressure();
    if (wait) await wait;
  }
  let end: TurnEnd | undefined;
  try {
    end = await modelThenTools(run);
    return end;
  } finally {
    if (run.hasUnwritten) await run.append([]);
    if (run.watched) run.emit({ type: 'turn_end', runId: run.runId, sessionId: run.sessionId, turn: run.turn, message: end?.message, toolResults: end?.toolResults ?? [] });
  }
}

async function modelThenTools(run: Run): Promise<TurnEnd> {
  const messageId = `${run.runId}.${run.open.count + 1}`;
  const live = run.watched ? new LiveMessage(run, messageId) : undefined;
  let answer: Answer;
  try {
    answer = await respond(run, live);
  } catch (error) {
    await giveUp(run, live, messageId, error);
    throw error;
  }
  const message = await keep(run, answer, messageId);
  const { decision } = answer;
  let tools: BatchOutcome | undefined;
  if (run.open.batch) {
    const notRun = decision === 'stop' ? 'the run was stopped.' : decision === 'loop_to_model' ? 'the model was asked again instead.' : undefined;
    const { calls: verdicts } = await run.guardOnce(answer.response, answer.ctx);
    tools = await runTools(run, run.open.batch, { tools: run.toolsSent, verdicts, notRun });
  }
  if (answer.inject.length > 0 && !tools?.pending.length) await inject(run, answer.inject);
  const natural = tools !== undefined || answer.forceContinue;
  const stop: Stop | undefined = decision === 'stop' ? { reason: 'stopped', message: `"${answer.by}" stopped the run.`, by: answer.by } : tools?.terminate ? FINAL : undefined;
  return {
    message,
    toolResults: tools?.results ?? NO_RESULTS,
    more: decision === 'loop_to_model' || (decision === 'natural' && natural),
    ...(stop && { stop }),
    suspended: (tools?.pending.length ?? 0) > 0,
  };
}

const NO_RESULTS: readonly ToolMessage[] = Object.freeze([]);

interface Answer {
  readonly response: ModelResponse;
  readonly ctx: Context;
  readonly forceContinue: boolean;
  readonly inject: readonly { readonly message: Message; readonly by: string }[];
  readonly decision: 'natural' | 'stop' | 'loop_to_model';
  readonly by?: string;
}

/** The model phase, guards and `afterModelResponse` included. `onError: 'restart'` begins it again. */
async function respond(run: Run, live: LiveMessage | undefined): Promise<Answer> {
  for (;;) {
    const ctx = new ModelContext(run, run.scope, run.agent.request(run.plan), run.history.length, new SeamCall(), live);
    try {
      const response = await ask(run, ctx);
      const shown = live ? await live.finish(response, ctx) : (await run.guardOnce(response, ctx)).response;
      ctx._call.check();
      if (ctx._state) run.cells.stage(ctx._state);
      return await decide(run, ctx, shown, live);
    } catch (error) {
      const kind = controlKind(error);
      if (kind === 'stop') run.call.latch(error, ctx._call.latchedBy);
      if (kind !== 'restart') throw error;
      live?.reset();
    }
  }
}

/** Transforms the request and goes through the layers to the model. */
async function ask(run: Run, ctx: ModelContext): Promise<ModelResponse> {
  const { transformContext, transformSystemPrompt } = run.plan.rules;
  if (transformContext.length > 0) {
    const { messages, by } = await rules.transformContext(transformContext, ctx.messages, ctx);
    if (by.length > 0) ctx.messages = run.withoutOrphans(messages, by, ctx);
  }
  if (transformSystemPrompt.length > 0) ctx.systemPrompt = await rules.transformSystemPrompt(transformSystemPrompt, ctx.systemPrompt, ctx);
  const layers = run.plan.layers.model;
  const work = layers.length === 0 ? callModel(ctx) : enter(layers, 0, ctx, callModel);
  return (isThenable(work) ? await run.supervise(work as Promise<unknown>) : work) as ModelResponse;
}

async function decide(run: Run, ctx: ModelContext, response: ModelResponse, live: LiveMessage | undefined): Promise<Answer> {
  const hooks = run.plan.rules.afterModelResponse;
  const plain = { response, ctx, forceContinue: ctx.forceContinue, inject: [], decision: 'natural' as const };
  if (hooks.length === 0) return plain;
  const turn = new TurnContext(run, { ...response, id: '' }, []);
  turn._metadata = ctx._metadata;
  const action = await rules.afterModelResponse(hooks, response, turn);
  if (turn._state) run.cells.stage(turn._state);
  const replaced = action.response !== response;
  const final = !replaced ? response : live ? await live.finish(action.response, ctx) : (await run.guardOnce(action.response, ctx)).response;
  return { ...plain, response: final, inject: action.injectMessages, decision: action.decision, by: action.by };
}

/** Appends the assistant message, then tells of it. */
async function keep(run: Run, { response }: Answer, messageId: string): Promise<AssistantMessage> {
  const { known, costUsd } = run.claimUsage(response.usage);
  const content = response.content.map((part, block) => (part.type === 'tool-call' ? withId(part, run.callId(part.id, messageId, block, response.content)) : part));
  // Only calls made in this run cost something: an answer from a cache carries no usage of its own.
  const message: AssistantMessage = placed({ ...response, id: '', content, usage: known ? response.usage : NO_USAGE }, messageId);
  const wait = run.append([{ type: 'message', runId: run.runId, message, ...(costUsd !== undefined && { costUsd }) }]);
  if (wait) await wait;
  if (run.watched) run.emit({ type: 'message_end', runId: run.runId, sessionId: run.sessionId, messageId, message });
  return message;
}

function withId<T extends { readonly id: string }>(part: T, id: string): T {
  return part.id === id ? part : { ...part, id };
}

/** There will be no response. After an abort the text that was released stays; otherwise nothing does. */
async function giveUp(run: Run, live: LiveMessage | undefined, messageId: string, error: unknown): Promise<void> {
  const released = controlKind(error) === 'abort' ? (live?.released() ?? []) : [];
  if (released.length === 0) {
    live?.discard();
    return;
  }
  const message: AssistantMessage = placed({ role: 'assistant', content: released, usage: NO_USAGE, stopReason: 'aborted', id: '' }, messageId);
  await run.append([{ type: 'message', runId: run.runId, message }]);
  run.emit({ type: 'message_end', runId: run.runId, sessionId: run.sessionId, messageId, message });
}

/** After a resume: the calls of the last message that have no result yet come first. */
async function resumeTools(run: Run): Promise<TurnEnd | undefined> {
  const { batch } = run.open;
  if (!batch) {
    const last = run.history.at(-1);
    const ended = last?.role === 'assistant' && run.open.count > 0;
    return ended ? { message: last, toolResults: [], more: false } : undefined;
  }
  if (run.watched) run.emit({ type: 'turn_start', runId: run.runId, sessionId: run.sessionId, turn: run.turn });
  let outcome: BatchOutcome | undefined;
  try {
    outcome = await runTools(run, batch, { tools: run.plan.tools });
    return { message: batch.message, toolResults: outcome.results, more: true, suspended: outcome.pending.length > 0, ...(outcome.terminate && { stop: FINAL }) };
  } finally {
    if (run.hasUnwritten) await run.append([]);
    if (run.watched) run.emit({ type: 'turn_end', runId: run.runId, sessionId: run.sessionId, turn: run.turn, message: batch.message, toolResults: outcome?.results ?? [] });
  }
}

// ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────

/** Messages from outside: guards and `acceptMessage` first. Input that is refused stops the run, the rest is left out. */
async function accept(run: Run, given: readonly Message[], from: 'input' | 'queue', entries: readonly EntryBody[] = []): Promise<void> {
  const { guards, rules: planned } = run.plan;
  const accepted: Message[] = [];
  for (let message of given) {
    const ctx = new RunContext(run, run.scope, given);
    let refusal: { reason: string; by: string } | undefined;
    if (guards.input.length > 0) {
      const { owner, deny } = await judgeMessage(guards, 'input', message, ctx);
      [message, refusal] = [owner, deny];
    }
    if (!refusal && planned.acceptMessage.length > 0) {
      const answer = await rules.acceptMessage(planned.acceptMessage, message, ctx);
      if ('block' in answer) refusal = { reason: answer.block, by: answer.by };
      else message = answer.message;
    }
    if (ctx._state) run.cells.stage(ctx._state);
    if (!refusal) accepted.push(message);
    else if (from === 'input') throw latched(run, new StopRun('guardrail', refusal.reason), refusal.by);
    else {
      run.note(refusal.by, `refused a message: ${refusal.reason}`);
      run.emitCustom('message_refused', { reason: refusal.reason }, refusal.by);
    }
  }
  await appendMessages(run, accepted, entries);
}

/** One append for all of them, and for what must not be lost or done twice with them. */
async function appendMessages(run: Run, given: readonly Message[], entries: readonly EntryBody[] = []): Promise<void> {
  const first = run.open.count + 1;
  const messages = given.map((message, i) => placed(message, `${run.runId}.${first + i}`));
  const wait = run.append([...entries, ...messages.map((message) => ({ type: 'message' as const, runId: run.runId, message }))]);
  if (wait) await wait;
  if (!run.watched) return;
  for (const message of messages) {
    if (message.role === 'tool') continue;
    const common = { runId: run.runId, sessionId: run.sessionId, messageId: message.id };
    run.emit({ type: 'message_start', ...common, role: message.role });
    run.emit({ type: 'message_end', ...common, message });
  }
}

/** Messages of middleware. User messages that nobody typed say so. */
async function inject(run: Run, messages: readonly { readonly message: Message; readonly by: string }[]): Promise<void> {
  const marked = messages.map(({ message, by }) => {
    if (message.role !== 'user' || isSyntheticMessage(message)) return message;
    return { ...message, metadata: { ...message.metadata, synthetic: true, source: by } };
  });
  await appendMessages(run, marked);
}

// ── Between turns ────────────────────────────────────────────────────────────────────────────────────────────

function boundary(run: Run): void {
  run.call.check();
  if (run.scope.aborted) throw run.scope.reason;
}

function checkLimits(run: Run): void {
  boundary(run);
  const { turns = 100 } = run.limits;
  const { turns: session = Number.POSITIVE_INFINITY } = run.sessionLimits;
  const reached = run.open.turns >= turns ? `The limit of ${turns} turns is reached.` : run.state.turns >= session ? `The session's limit of ${session} turns is reached.` : undefined;
  const stop = reached ? new StopRun('max_turns', reached) : run.budget.exceeded();
  if (stop) throw latched(run, stop, 'kernel');
}

function latched(run: Run, stop: StopRun, by: string): StopRun {
  run.call.latch(stop, by);
  return stop;
}

async function shouldStop(run: Run, { message, toolResults }: TurnEnd): Promise<Stop | undefined> {
  const hooks = run.plan.rules.shouldStopAfterTurn;
  if (hooks.length === 0) return undefined;
  const ctx = new TurnContext(run, message, toolResults);
  const stop = await rules.shouldStopAfterTurn(hooks, ctx);
  if (ctx._state) run.cells.stage(ctx._state);
  return stop;
}

async function atRunEnd(run: Run, { message, toolResults }: TurnEnd): Promise<readonly { readonly message: Message; readonly by: string }[]> {
  const hooks = run.plan.rules.onRunEnd;
  if (hooks.length === 0) return [];
  const ctx = new TurnContext(run, message, toolResults);
  const injected = await rules.onRunEnd(hooks, ctx);
  if (ctx._state) run.cells.stage(ctx._state);
  return injected;
}
