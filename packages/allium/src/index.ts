/** Allium: a runtime for LLM agents in which every cross-cutting concern is middleware. */
export { Agent, type AgentOptions, type RunOptions } from './kernel/agent.js';
export { type Clock, sleep, systemClock } from './kernel/clock.js';
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
export type { AgentEvent, MessageDelta, Observer } from './kernel/events.js';
export type { Explanation } from './kernel/explain.js';
export { requestKey } from './kernel/hash.js';
export type { Hazard } from './kernel/hazards.js';
export type { Limits, PriceOf, SessionLimits } from './kernel/limits.js';
export { memoryStore } from './kernel/memory-store.js';
export * from './kernel/messages.js';
export * from './kernel/middleware.js';
export * from './kernel/model.js';
export type { ObserverProblem } from './kernel/observer-feed.js';
export { type Pipeline, type PipelineLayer, pipeline } from './kernel/pipeline.js';
export type { Change, RunResult, RunStatus, Stop, StopReason } from './kernel/result.js';
export { RULES, type RuleHook } from './kernel/rules.js';
export type { ResumeOptions, RunStream, Session } from './kernel/session.js';
export type { SchemaIssue, SchemaResult, StandardSchema } from './kernel/standard-schema.js';
export { defineState, type StateAccess, type StateCell, type StateScope } from './kernel/state.js';
export * from './kernel/store.js';
export { type Tool, type ToolOptions, type ToolResult, tool, toolResult } from './kernel/tool.js';
export { isTransient } from './kernel/transient.js';
