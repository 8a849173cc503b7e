/** Every middleware of the box. Each is also at `allium/middleware/<name>`. */

export {
  type ApprovalAnswers,
  type ApprovalOptions,
  type ApprovalPolicy,
  type ApprovalRule,
  type ApprovalVerdict,
  approval,
  ask,
  deny,
  policyFor,
} from './approval/index.js';
export {
  type AuditFile,
  type AuditFunction,
  type AuditHead,
  type AuditKey,
  type AuditLine,
  type AuditLogOptions,
  type AuditProblem,
  type AuditReport,
  auditHead,
  auditLog,
  verifyAudit,
} from './audit-log/index.js';
export { type BudgetMap, type BudgetOptions, type BudgetStore, budget } from './budget/index.js';
export { type CacheEntry, type CacheOptions, type CacheStore, cache, cacheKey } from './cache/index.js';
export { type CallLimitsOptions, callLimits } from './call-limits/index.js';
export { type CircuitBreakerOptions, circuitBreaker } from './circuit-breaker/index.js';
export {
  type Compaction,
  type CompactionOptions,
  type CompactionState,
  compaction,
  type TokenCounter,
} from './compaction/index.js';
export { type ConcurrencyOptions, concurrency } from './concurrency/index.js';
export { type ConsoleLoggerOptions, consoleLogger } from './console-logger/index.js';
export { type ContentTruncatorOptions, contentTruncator } from './content-truncator/index.js';
export { type ContextEditingOptions, contextEditing } from './context-editing/index.js';
export {
  type CallCost,
  type CostTrackingOptions,
  costTracking,
  type PricedModel,
} from './cost-tracking/index.js';
export { type DeferredToolsOptions, deferredTools, type ToolGroup } from './deferred-tools/index.js';
export { type FallbackError, type FallbackOptions, fallback, mayFallBack } from './fallback/index.js';
export { type FileValidatorOptions, fileValidator } from './file-validator/index.js';
export { type Goal, type GoalOptions, type GoalOutcome, goal } from './goal/index.js';
export { type HistoryTruncatorOptions, historyTruncator } from './history-truncator/index.js';
export {
  type IdempotencyEntry,
  type IdempotencyOptions,
  type IdempotencyStore,
  idempotency,
} from './idempotency/index.js';
export { type LoopGuardOptions, loopGuard } from './loop-guard/index.js';
export { type MaxTurnsOptions, maxTurns } from './max-turns/index.js';
export {
  localMemory,
  type Memory,
  type MemoryItem,
  type MemoryRecallOptions,
  type MemoryScope,
  memoryRecall,
  type SqliteMemory,
  type SqliteMemoryOptions,
  sqliteMemory,
} from './memory-recall/index.js';
export {
  type Attributes,
  type AttributeValue,
  type Instrument,
  type ObservabilityOptions,
  observability,
  type SpanHandle,
  type SpanOutcome,
  type SpanStart,
} from './observability/index.js';
export { type PatchToolCallsOptions, patchToolCalls } from './patch-tool-calls/index.js';
export { cacheMark, type PromptCachingOptions, promptCaching } from './prompt-caching/index.js';
export { type RateLimitOptions, rateLimit, type SharedLimiter } from './rate-limit/index.js';
export { type RecordOptions, record } from './record/index.js';
export { type ReplayOptions, replay } from './replay/index.js';
export { isTransient, type RetryOptions, retry } from './retry/index.js';
export { type SkillsOptions, skills } from './skills/index.js';
export { type SmoothStreamOptions, smoothStream } from './smooth-stream/index.js';
export { type StopwatchOptions, stopwatch } from './stopwatch/index.js';
export {
  type DeepPartial,
  type StructuredOutput,
  type StructuredOutputOptions,
  structuredOutput,
} from './structured-output/index.js';
export {
  type SubagentResult,
  type SubagentSpec,
  type SubagentsOptions,
  subagents,
} from './subagents/index.js';
export { type TimeoutOptions, timeout } from './timeout/index.js';
export { type Todo, type TodoListOptions, type TodoStatus, todoList } from './todo-list/index.js';
export {
  type ToolCacheEntry,
  type ToolCacheOptions,
  type ToolCacheStore,
  toolCache,
} from './tool-cache/index.js';
export { type ToolEmulatorOptions, toolEmulator } from './tool-emulator/index.js';
export { type ToolErrorsOptions, toolErrors } from './tool-errors/index.js';
export {
  fileSpill,
  memorySpill,
  type SpillStore,
  type ToolResultLimitOptions,
  toolResultLimit,
} from './tool-result-limit/index.js';
export { type ToolSelectorOptions, toolSelector } from './tool-selector/index.js';
