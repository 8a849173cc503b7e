/** The contexts that hooks are given. A field means the same in all of them. */

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

/** The agent of the run. `agent/agent.ts`, which is above, extends it to the whole `Agent`. */
export interface RunningAgent {
  readonly name: string;
  readonly clock: Clock;
}

/** Run options that middleware declare, by name. */
export type DeclaredOptions = Readonly<Record<string, unknown>>;

/** What every context has. */
export interface Context {
  readonly seam: Seam;
  readonly agent: RunningAgent;
  /** The composed plan of this run, including per-run middleware. */
  readonly plan: Plan;
  readonly runId: string;
  /** For a sub-agent: the run whose tool started this one. */
  readonly parentRunId: string | undefined;
  readonly sessionId: string;
  readonly tenant: string | undefined;
  /** The current turn, from 1; 0 before the first. */
  readonly turn: number;
  /** 0 for a top-level run, 1 for a sub-agent, … */
  readonly depth: number;
  /** Aborts when this call is cancelled, times out, or the run ends early. */
  readonly signal: AbortSignal;
  /** Tokens of the run so far, including sub-agents and middleware's own calls. */
  readonly usage: Usage;
  /** Milliseconds the run has spent waiting for a human's answer or for the reader of its stream. */
  readonly pausedMs: number;
  /** Is the run waiting like that right now? */
  readonly isPaused: boolean;
  /** Does anybody watch the run: a reader of its stream, or an observer? */
  readonly isWatched: boolean;
  /** Dollars spent so far; undefined if a price or the usage is unknown. */
  readonly costUsd: number | undefined;
  /** The whole conversation, as a read-only view that grows as messages are appended. Copy it to keep a snapshot. */
  readonly history: readonly Message[];
  /** Reads and writes state cells. */
  readonly state: StateAccess;
  /** Scratch data of this call. Inner layers see it and may add fields for outer layers, but can't change what outer layers set. */
  readonly metadata: Record<string, unknown>;
  /** The `metadata` that the caller passed to this run. */
  readonly runMetadata: Metadata;
  /** Run options that middleware declare with `runOptions`, as the caller passed them. Frozen. */
  readonly options: DeclaredOptions;

  /** Ends the run cleanly, by throwing. If somebody swallows the exception, the run ends at the next step. */
  stop(reason?: StoppingReason, why?: string): never;
  /** Puts a `custom` event into the stream, with a copy of the data. Class instances are passed on as they are. */
  emit(name: string, data?: unknown): void;
  /** Adds a line to `result.changes` under this middleware's name: what it did, or couldn't do. */
  note(what: string): void;
  /** Calls a model for the middleware itself: with the same signal, budget and inner layers, never in the user's stream. */
  generate(model: Model, request: GenerateRequest): Promise<ModelResponse>;
  /**
   * Does this call run inside `next()` of the model or tool layer with that context? A guard's model call runs inside the
   * call it judges, and a sub-agent inside the tool that called it.
   */
  isInside(layer: Context): boolean;
}

/** The request of `ctx.generate()`. */
export interface GenerateRequest {
  /** Text, content, or a whole conversation. */
  readonly messages: MessageInput | readonly Message[];
  /** Instructions for the model, before the messages. @default '' */
  readonly systemPrompt?: string;
  /** Tools the model may call in its answer; nobody runs the calls. @default [] */
  readonly tools?: readonly Tool[];
  /** Settings of the call. @default {} */
  readonly settings?: ModelSettings;
}

/** Around a whole run. */
export interface RunContext extends Context {
  readonly seam: 'run';
  /**
   * The messages the run was started with; reassign to change them. Once they are in the history, the messages as guards
   * and hooks left them. Empty for a resume.
   */
  input: readonly Message[];
  /** History and input. */
  readonly messages: readonly Message[];
  result: RunResult | undefined;
  /** In `afterRun`: why the run failed. */
  readonly error: unknown;
}

/** Around one model call. Assigning a field changes it for this call. */
export interface ModelContext extends Context {
  readonly seam: 'model';
  /** The number of this attempt, from 1, of the nearest layer that called inward more than once. */
  readonly attempt: number;
  /** Forces one more turn even if the model called no tool. */
  forceContinue: boolean;
  /** The model's response. Set it in `beforeModel` to answer without calling inward. */
  response: ModelResponse | undefined;
  /** The same as `response`. */
  result: ModelResponse | undefined;
  /** The context that made this call with `ctx.generate()`; undefined for a call of the run itself. */
  readonly caller: Context | undefined;
  systemPrompt: string;
  tools: readonly Tool[];
  model: Model;
  settings: ModelSettings;
  /** The messages the model will receive; reassign to change them for this call. */
  messages: readonly Message[];
  /** Registers a transform of the stream that reaches this layer. The factory runs for each attempt. Not for safety: use a guard. */
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
  /** The same for every attempt of this call, also after a crash. Pass it to services that de-duplicate. */
  readonly idempotencyKey: string;
  /** Parsed and frozen. Assign raw input, like the model's own: it is validated and judged again. */
  args: Args;
  /** The arguments as JSON, before the schema changed them. Spread these when rewriting `args`. */
  readonly rawArgs: unknown;
  /** How often layers or hooks have changed the arguments. */
  readonly revision: number;
  /** Milliseconds this execution may take, not counting time spent waiting for people and readers. */
  timeoutMs: number | undefined;
  result: ToolResult | undefined;
  /** The call was refused and did not run. */
  readonly blocked: boolean;
  /** Set it together with `result` in `beforeTool` to answer without running the tool. */
  skip: boolean;
  readonly attempt: number;
  readonly isError: boolean;
  /** Is this a call of that tool, or of a copy with the same name and `input`? Narrows `args`. */
  is<T extends Tool<any, any>>(
    tool: T,
  ): this is ToolContext<T extends Tool<any, infer Output> ? Output : never>;
  /**
   * Shows progress: emits an event with a copy of the content, which the model never sees. Await it if you emit a lot, so
   * that you don't outrun the consumer.
   */
  update(partial: string | readonly ToolContent[], details?: unknown): Awaitable<void>;
  /**
   * Asks a human. Returns the answer, or ends this attempt and suspends the run. Once there is an answer, the tool runs again
   * from the start, so ask before side effects.
   */
  suspend(request: Request): Promise<Decision>;
}

/** After a response and at the end of a turn or run. */
export interface TurnContext extends Context {
  readonly seam: 'run';
  /** The assistant message of the turn, if there was one. */
  readonly message: AssistantMessage | undefined;
  readonly toolResults: readonly ToolMessage[];
  /** Will the run continue by itself? There are tool results to answer, or somebody forced another turn. */
  readonly more: boolean;
  /** The messages this run has added to the history. */
  readonly newMessages: readonly Message[];
  /** The structured output that was set with `setOutput()`. */
  readonly output: unknown;
  /** Sets the structured output of the run. Another turn clears it. */
  setOutput(output: unknown): void;
}
