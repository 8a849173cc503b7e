/** Allium: a runtime for LLM agents in which every cross-cutting concern is middleware. */
export { Agent } from './agent/agent.js';
export type { AgentOptions, SessionOptions } from './agent/agent-options.js';
export type { AsToolOptions } from './agent/agent-tool.js';
export type { RunStream } from './agent/event-stream.js';
export type { Explanation } from './agent/explain.js';
export type { ObserverProblem } from './agent/observer-feed.js';
export type { ForkOptions, HistoryPoint } from './agent/rewind.js';
export type { Session } from './agent/session.js';
export type { Allowance } from './agent/session-allowances.js';
export { TRAITS } from './agent/traits.js';
export { type ComposeOptions, compose, type ExplicitHooks } from './compose/compose.js';
export type { QueuedMessage } from './kernel/inbox/inbox.js';
export { type StoreTimeoutOptions, withStoreTimeout } from './kernel/journal/bounded-store.js';
export { type Clock, monotonic, systemClock } from './kernel/lib/clock.js';
export { AlliumError, type Attribution, attribution, sessionConflict } from './kernel/lib/errors.js';
export {
  type AssistantContent,
  type AssistantMessage,
  assistantMessage,
  type FileContent,
  type FinishReason,
  type ImageContent,
  isSyntheticMessage,
  type Message,
  type MessageInput,
  type Metadata,
  type ModelResponse,
  NO_USAGE,
  type ProviderContent,
  syntheticUserMessage,
  type TextContent,
  type ThinkingContent,
  type ToolCall,
  type ToolContent,
  type ToolMessage,
  textOf,
  toolCallsOf,
  type Usage,
  type UserContent,
  type UserInput,
  type UserMessage,
  userMessage,
} from './kernel/messages/messages.js';
export {
  type JsonSchema,
  type Model,
  type ModelPart,
  type ModelRequest,
  type ModelSettings,
  modelName,
  type Price,
  type PriceOf,
  type StreamTransform,
  type SystemMark,
  type ToolSpec,
} from './kernel/messages/model.js';
export type { SchemaIssue, SchemaResult, StandardSchema } from './kernel/messages/standard-schema.js';
export { type ToolResult, type ToolResultPatch, toolResult } from './kernel/messages/tool-result.js';
export type {
  Context,
  GenerateRequest,
  ModelContext,
  RunContext,
  ToolContext,
  TurnContext,
} from './kernel/protocol/contexts.js';
export type { AgentEvent, MessageDelta, Observer } from './kernel/protocol/events.js';
export type {
  Finding,
  GuardAction,
  GuardPoint,
  GuardSubject,
  GuardVerdict,
  Severity,
  Span,
  Verdict,
  Window,
} from './kernel/protocol/guard.js';
export type { Limits, SessionLimits } from './kernel/protocol/limits.js';
export type {
  AcceptVerdict,
  ErrorAction,
  Guard,
  GuardContext,
  Hazard,
  HistoryContext,
  Middleware,
  MiddlewareList,
  ModelOverride,
  Next,
  Plan,
  Restore,
  RestoreContext,
  ToolOverride,
  ToolVerdict,
  TurnAction,
} from './kernel/protocol/middleware.js';
export { RULES, type RuleHook, type Seam } from './kernel/protocol/plan.js';
export type { Change, RunResult, StateReader } from './kernel/protocol/result.js';
export { RunError } from './kernel/protocol/result.js';
export type { QueueModes, ResumeOptions, RunOptions } from './kernel/protocol/run-options.js';
export { Aborted, isControl, StopRun } from './kernel/protocol/signals.js';
export type { StateAccess, StateCell, StateScope } from './kernel/protocol/state.js';
export type { RunStatus, Stop, StoppingReason, StopReason } from './kernel/protocol/stop.js';
export {
  type Awaitable,
  type Decision,
  ENTRY_VERSION,
  type Entry,
  type EntryBody,
  type InboxItem,
  type ListOptions,
  type NewEntry,
  type PendingRequest,
  type Posted,
  type Queued,
  type Request,
  type RequestContext,
  type RequestHandler,
  type SessionInfo,
  type SessionPage,
  type Snapshot,
  type Store,
  type Tail,
  type TurnPlan,
} from './kernel/protocol/store.js';
export { type Tool, type ToolOptions, toolSpec } from './kernel/protocol/tool.js';
export type { HookTotal, RunTrace, TraceAct, TraceMode, TraceRecord } from './kernel/protocol/trace.js';
export { runResult } from './kernel/run/run-result.js';
export { BaseMiddleware, defineMiddleware } from './kit/define-middleware.js';
export { defineState, type JsonOnly } from './kit/define-state.js';
export { tool } from './kit/define-tool.js';
export { ERROR_CODES, type ErrorCode } from './kit/error-codes.js';
export { type Pipeline, type PipelineLayer, pipeline } from './kit/pipeline.js';
export { type KeyedRequest, requestKey } from './kit/request-key.js';
export { sleep } from './kit/sleep.js';
export type { SystemBlock } from './kit/system-blocks.js';
export { terminalJson, terminalText } from './kit/terminal-text.js';
export { toolOutput } from './kit/tool-output.js';
export { isTransient } from './kit/transient.js';
export { window } from './kit/window.js';
export { memoryStore } from './stores/memory/index.js';
export { readTrace } from './trace/index.js';
export {
  type SentRequest,
  TRACE_VERSION,
  type TraceChanges,
  type TracedError,
  type TracedMessage,
  type TracedMessages,
  type TracedRequest,
  type TracedText,
  type ValueChange,
} from './trace/records.js';
