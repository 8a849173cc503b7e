/** `allium/http`: agents over HTTP, as a function from `Request` to `Response`. */

export type { RunAnswer } from './answer-run.js';
export type { CorsOptions } from './cors.js';
export type {
  ClientAllowance,
  ClientContent,
  ClientDelta,
  ClientEnd,
  ClientEvent,
  ClientMessage,
  ClientUsage,
  Question,
  SentEvent,
} from './events.js';
export {
  type EventHub,
  type EventHubOptions,
  type EventReader,
  eventHub,
  type FollowOptions,
  type MirroredRun,
  type PublishedRun,
} from './follow.js';
export { type FetchHandler, type NodeRequest, type NodeResponse, toNodeListener } from './node.js';
export type { Show } from './projection.js';
export type { QueuedOutcome, QueuedRun, RunQueue } from './queued.js';
export {
  type Authorize,
  type Caller,
  type RequestAim,
  type ServeContext,
  type ServeHandler,
  type ServeOptions,
  serve,
} from './serve.js';
