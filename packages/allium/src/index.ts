/** Allium: a runtime for LLM agents in which every cross-cutting concern is middleware. */
export { Agent, type AgentOptions, type RunOptions } from './kernel/agent.js';
export type { AsToolOptions } from './kernel/agent-tool.js';
export { type StoreTimeoutOptions, withStoreTimeout } from './kernel/bounded-store.js';
export { type Clock, monotonic, sleep, systemClock } from './kernel/clock.js';
export { type ComposeOptions, compose, type ExplicitHooks, type Plan } from './kernel/compose.js';
export type {
  Context,
  GenerateRequest,
  ModelContext,
  RunContext,
  ToolContext,
  TurnContext,
} from './kernel/context.js';
export {
  Aborted,
  AlliumError,
  type Attribution,
  attribution,
  ERROR_CODES,
  type ErrorCode,
  isControl,
  RunError,
  StopRun,
  sessionConflict,
} from './kernel/errors.js';
export type { RunStream } from './kernel/event-stream.js';
export type { AgentEvent, MessageDelta, Observer } from './kernel/events.js';
export type { Explanation } from './kernel/explain.js';
export type { Hazard } from './kernel/hazards.js';
export type { QueuedMessage, QueueModes } from './kernel/inbox.js';
export type { JsonOnly } from './kernel/json-copy.js';
export type { Limits, SessionLimits } from './kernel/limits.js';
export { memoryStore } from './kernel/memory-store.js';
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
} from './kernel/messages.js';
export {
  type AcceptVerdict,
  BaseMiddleware,
  defineMiddleware,
  type ErrorAction,
  type Guard,
  type GuardContext,
  type GuardPoint,
  type GuardSubject,
  type Middleware,
  type MiddlewareList,
  type ModelOverride,
  type Next,
  type Seam,
  type Span,
  type ToolOverride,
  type ToolResultPatch,
  type ToolVerdict,
  TRAITS,
  type TurnAction,
  type Verdict,
  type Window,
  window,
} from './kernel/middleware.js';
export {
  type JsonSchema,
  type Model,
  type ModelPart,
  type ModelRequest,
  type ModelSettings,
  modelName,
  type Price,
  type StreamTransform,
  type ToolSpec,
} from './kernel/model.js';
export type { ObserverProblem } from './kernel/observer-feed.js';
export { type Pipeline, type PipelineLayer, pipeline } from './kernel/pipeline.js';
export type { PriceOf } from './kernel/prices.js';
export { type KeyedRequest, requestKey } from './kernel/request-key.js';
export type { Change, RunResult, RunStatus, Stop, StoppingReason, StopReason } from './kernel/result.js';
export type { StateReader } from './kernel/result-state.js';
export type { HistoryPoint } from './kernel/rewind.js';
export { RULES, type RuleHook } from './kernel/rules.js';
export { runResult } from './kernel/run-result.js';
export type { ForkOptions, ResumeOptions, Session, SessionOptions } from './kernel/session.js';
export type { SchemaIssue, SchemaResult, StandardSchema } from './kernel/standard-schema.js';
export { defineState, type StateAccess, type StateCell, type StateScope } from './kernel/state.js';
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
  type Queued,
  type Request,
  type RequestContext,
  type RequestHandler,
  type SessionInfo,
  type Store,
  type TurnPlan,
} from './kernel/store.js';
export { terminalJson, terminalText } from './kernel/terminal-text.js';
export { type Tool, type ToolOptions, type ToolResult, tool, toolResult, toolSpec } from './kernel/tool.js';
export { isTransient } from './kernel/transient.js';
