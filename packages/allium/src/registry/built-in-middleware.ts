/** The middleware of the box by name, each loaded when it is asked for. */
import type { Fields } from '../kernel/lib/shapes.js';

/** What each module exports: its factory, whose name is its own in camelCase, and the fields of its options. */
export interface MiddlewareModule {
  readonly OPTIONS: Fields;
}

export const BUILT_IN: Readonly<Record<string, () => Promise<MiddlewareModule>>> = {
  approval: () => import('../middleware/approval/index.js'),
  'audit-log': () => import('../middleware/audit-log/index.js'),
  budget: () => import('../middleware/budget/index.js'),
  cache: () => import('../middleware/cache/index.js'),
  'call-limits': () => import('../middleware/call-limits/index.js'),
  'circuit-breaker': () => import('../middleware/circuit-breaker/index.js'),
  compaction: () => import('../middleware/compaction/index.js'),
  concurrency: () => import('../middleware/concurrency/index.js'),
  'console-logger': () => import('../middleware/console-logger/index.js'),
  'content-truncator': () => import('../middleware/content-truncator/index.js'),
  'context-editing': () => import('../middleware/context-editing/index.js'),
  'cost-tracking': () => import('../middleware/cost-tracking/index.js'),
  'deferred-tools': () => import('../middleware/deferred-tools/index.js'),
  fallback: () => import('../middleware/fallback/index.js'),
  'file-validator': () => import('../middleware/file-validator/index.js'),
  goal: () => import('../middleware/goal/index.js'),
  'history-truncator': () => import('../middleware/history-truncator/index.js'),
  idempotency: () => import('../middleware/idempotency/index.js'),
  'loop-guard': () => import('../middleware/loop-guard/index.js'),
  'max-turns': () => import('../middleware/max-turns/index.js'),
  'memory-recall': () => import('../middleware/memory-recall/index.js'),
  observability: () => import('../middleware/observability/index.js'),
  'patch-tool-calls': () => import('../middleware/patch-tool-calls/index.js'),
  'prompt-caching': () => import('../middleware/prompt-caching/index.js'),
  'rate-limit': () => import('../middleware/rate-limit/index.js'),
  record: () => import('../middleware/record/index.js'),
  replay: () => import('../middleware/replay/index.js'),
  retry: () => import('../middleware/retry/index.js'),
  skills: () => import('../middleware/skills/index.js'),
  'smooth-stream': () => import('../middleware/smooth-stream/index.js'),
  stopwatch: () => import('../middleware/stopwatch/index.js'),
  'structured-output': () => import('../middleware/structured-output/index.js'),
  subagents: () => import('../middleware/subagents/index.js'),
  timeout: () => import('../middleware/timeout/index.js'),
  'todo-list': () => import('../middleware/todo-list/index.js'),
  'tool-cache': () => import('../middleware/tool-cache/index.js'),
  'tool-emulator': () => import('../middleware/tool-emulator/index.js'),
  'tool-errors': () => import('../middleware/tool-errors/index.js'),
  'tool-result-limit': () => import('../middleware/tool-result-limit/index.js'),
  'tool-selector': () => import('../middleware/tool-selector/index.js'),
};
