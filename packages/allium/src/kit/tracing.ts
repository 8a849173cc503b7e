/** Tracing: the seam that traces are written with, and what it shows of a call beyond its context. */

import { internal, type ModelContext as Modelling } from '../kernel/context/context.js';
import type { RequestParts } from '../kernel/context/run-port.js';
import type { ToolInput } from '../kernel/context/tool-context.js';
import type { Recording } from '../kernel/context/tracing.js';
import type { Context, ModelContext, ToolContext } from '../kernel/protocol/contexts.js';

export type { RequestParts } from '../kernel/context/run-port.js';
export type { ToolInput } from '../kernel/context/tool-context.js';
export type {
  Recorded,
  RecordedRun,
  Recording,
  StoredTrace,
  TracedRun,
  Tracer,
} from '../kernel/context/tracing.js';
export type { PlannedGuard } from '../kernel/protocol/middleware.js';
export type { Layer, PlannedHook } from '../kernel/protocol/plan.js';

/** The recording of the run that a context belongs to; undefined if the run isn't traced. */
export function recordingOf(ctx: Context): Recording | undefined {
  return internal(ctx)._run.trace;
}

/**
 * The parts of a call that hooks may assign: of the request to a model, the arguments of a tool, or the input of a run. An
 * assignment makes another object, so two looks at the same one show that nothing was assigned in between.
 */
export function callParts<C extends Context>(ctx: C): CallParts<C> {
  // The end of a turn has neither: nothing can be assigned there.
  const { _request, _input } = ctx as Partial<Record<'_request' | '_input', unknown>>;
  return (ctx.seam === 'model' ? _request : _input) as CallParts<C>;
}

/** See `callParts`. */
export type CallParts<C extends Context> = C extends ModelContext
  ? RequestParts
  : C extends ToolContext
    ? ToolInput
    : unknown;

/** A model or tool call: how often it was called, how many messages of the history it covers, and which message it becomes. */
export function callFacts(ctx: ModelContext | ToolContext): CallFacts {
  const { attempts, length = 0, live } = (internal(ctx) as Modelling)._call;
  return { attempts, historyLength: length, messageId: (live as Partial<Live> | undefined)?.messageId };
}

/** See `callFacts`. */
export interface CallFacts {
  readonly attempts: number;
  readonly historyLength: number;
  readonly messageId: string | undefined;
}

interface Live {
  readonly messageId: string;
}
