/** What hooks are given: one family of contexts in which a field means the same wherever it appears. */

import type { Clock } from '../lib/clock.js';
import type {
  AssistantMessage,
  Message,
  MessageInput,
  Metadata,
  ModelResponse,
  ToolCall,
  ToolContent,
  ToolMessage,
  Usage,
} from '../messages/messages.js';
import type { Model, ModelSettings, StreamTransform } from '../messages/model.js';
import type { ToolResult } from '../messages/tool-result.js';
import type { Plan } from './middleware.js';
import type { Seam } from './plan.js';
import type { RunResult } from './result.js';
import type { StateAccess } from './state.js';
import type { StoppingReason } from './stop.js';
import type { Awaitable, Decision, Request } from './store.js';
import type { Tool } from './tool.js';

/** The agent whose run it is. The room of agents, which is above, makes it the whole `Agent` (`agent/agent.ts`). */
export interface RunningAgent {
  readonly name: string;
  readonly clock: Clock;
}

/** Options of a run that belong to middleware, by name. */
export type DeclaredOptions = Readonly<Record<string, unknown>>;

/** What every context has. */
export interface Context {
  readonly seam: Seam;
  readonly agent: RunningAgent;
  /** What was composed for this run, per-run middleware included. */
  readonly plan: Plan;
  readonly runId: string;
  /** The run whose tool started this one, for a sub-agent. */
  readonly parentRunId: string | undefined;
  readonly sessionId: string;
  readonly tenant: string | undefined;
  /** The turn under way, from 1; 0 before the first. */
  readonly turn: number;
  /** 0 for a run of its own, 1 for a sub-agent's, … */
  readonly depth: number;
  /** Aborts when this call is cancelled, times out, or the run ends early. */
  readonly signal: AbortSignal;
  /** Tokens of the run so far, sub-agents and middleware's own calls included. */
  readonly usage: Usage;
  /** Milliseconds so far in which the run only waited: for a human's answer, or for whoever reads its stream. */
  readonly pausedMs: number;
  /** Is the run only waiting right now, as `pausedMs` counts it? */
  readonly isPaused: boolean;
  /** Does anybody see the run live: a reader of its stream, or an observer? */
  readonly isWatched: boolean;
  /** Dollars spent so far; undefined when a price, or what was used, is unknown. */
  readonly costUsd: number | undefined;
  /** The whole conversation: one read-only view that grows as messages are appended. Copy it to keep it as it is. */
  readonly history: readonly Message[];
  /** Durable cells. */
  readonly state: StateAccess;
  /** Scratch of this call. Inner layers see it; what they add reaches outer layers, what outer layers set stays theirs. */
  readonly metadata: Record<string, unknown>;
  /** What the caller passed as `metadata` with this run. */
  readonly runMetadata: Metadata;
  /** Options of this run that middleware declare with `runOptions`, as the caller passed them; the record is frozen. */
  readonly options: DeclaredOptions;

  /** Ends the run cleanly. Throws; even if the exception is swallowed, the run ends at the next boundary. */
  stop(reason?: StoppingReason, why?: string): never;
  /** Puts a `custom` event into the stream, with a copy of the data. Instances of classes are told as they are. */
  emit(name: string, data?: unknown): void;
  /** Adds a line to `result.changes`, under the name of this middleware: what it did, or could not do. */
  note(what: string): void;
  /** Calls a model for a middleware's own purposes: same signal, budget and inner layers, never in the user's stream. */
  generate(model: Model, request: GenerateRequest): Promise<ModelResponse>;
  /**
   * Is this call under way inside `next()` of the model or tool layer that was given that context? So is the model
   * call of a guard inside the call it judges, and a sub-agent inside the tool that asked it.
   */
  isInside(layer: Context): boolean;
}

/** What a middleware asks a model itself, with `ctx.generate()`. */
export interface GenerateRequest {
  /** What is asked: text, content, or a whole conversation. */
  readonly messages: MessageInput | readonly Message[];
  /** Told to the model before the messages. @default '' */
  readonly systemPrompt?: string;
  /** What the model may answer with calls of; nobody runs them. @default [] */
  readonly tools?: readonly Tool[];
  /** How the model is asked. @default {} */
  readonly settings?: ModelSettings;
}

/** Around a whole run. */
export interface RunContext extends Context {
  readonly seam: 'run';
  /**
   * The messages the run was started with; reassign to change them. Once they are taken in, what guards and hooks left
   * of them. Empty for a resume.
   */
  input: readonly Message[];
  /** History and input. */
  readonly messages: readonly Message[];
  result: RunResult | undefined;
  /** In `afterRun`: why the run failed. */
  error: unknown;
}

/** Around one model call. What is assigned here is what this call uses. */
export interface ModelContext extends Context {
  readonly seam: 'model';
  /** Which try this is, from 1, of the nearest layer that called inward more than once. */
  attempt: number;
  /** One more turn although the model asked for no tool. */
  forceContinue: boolean;
  /** What the model answered; set it in `beforeModel` to answer without calling inward. */
  response: ModelResponse | undefined;
  /** The same as `response`. */
  result: ModelResponse | undefined;
  /** Who asked for this call with `ctx.generate()`; undefined for a call of the run itself. */
  readonly caller: Context | undefined;
  systemPrompt: string;
  tools: readonly Tool[];
  model: Model;
  settings: ModelSettings;
  /** What the model will receive; reassign to change it for this call. */
  messages: readonly Message[];
  /** Registers a transform of the stream that comes in to this layer; made anew for each attempt. Not for safety: use a guard. */
  transform(factory: () => StreamTransform): void;
}

/** Around one tool call, in the hooks that decide about it, and in the tool itself. */
export interface ToolContext<Args = any> extends Context {
  readonly seam: 'tool';
  readonly assistantMessage: AssistantMessage;
  /** The call, with its arguments as the model wrote them. */
  readonly toolCall: ToolCall;
  /** Undefined when the model named a tool that does not exist. */
  readonly tool: Tool | undefined;
  /** The same for every attempt of this call, also after a crash: hand it to services that de-duplicate. */
  readonly idempotencyKey: string;
  /** Parsed and frozen. Reassigning takes raw input, like the model's own: it is validated and judged again. */
  args: Args;
  /** The arguments as JSON, before the schema touched them: what to spread when rewriting `args`. */
  readonly rawArgs: unknown;
  /** What a layer or hook rewrote: 0 until arguments were changed. */
  readonly revision: number;
  /** Milliseconds this execution may take, not counting those that people and readers take. */
  timeoutMs: number | undefined;
  result: ToolResult | undefined;
  /** The call was refused and did not run. */
  blocked: boolean;
  /** Set together with `result` in `beforeTool`: answer without running the tool. */
  skip: boolean;
  attempt: number;
  readonly isError: boolean;
  /** Is this a call of that tool, or of a copy of it that has its name and its `input`? Narrows `args`. */
  is<T extends Tool<any, any>>(
    tool: T,
  ): this is ToolContext<T extends Tool<any, infer Output> ? Output : never>;
  /**
   * Shows progress: an event with a copy of what is given, never sent to the model. Whoever shows a lot awaits it, so as
   * not to outrun the consumer.
   */
  update(partial: string | readonly ToolContent[], details?: unknown): Awaitable<void>;
  /**
   * Asks a human. Returns the answer, or ends this attempt: the run is then suspended, and once there is an answer
   * the tool runs again from its start. So ask before side effects.
   */
  suspend(request: Request): Promise<Decision>;
}

/** After a response and at the end of a turn or run. */
export interface TurnContext extends Context {
  readonly seam: 'run';
  /** The assistant message of the turn; undefined when there was none. */
  readonly message: AssistantMessage | undefined;
  readonly toolResults: readonly ToolMessage[];
  /** The run goes on by itself: there are tool results to answer, or somebody asked for another turn. */
  readonly more: boolean;
  /** Everything this run has added to the history. */
  readonly newMessages: readonly Message[];
  /** The structured output that `setOutput()` was given; undefined until then. */
  readonly output: unknown;
  /** Sets the structured output of the run. Another turn takes it back. */
  setOutput(output: unknown): void;
}
