/**
 * A hook at work in a traced run: what it was given, and how long it takes. Fields are declared, because every hook of
 * every turn makes one of these and initialising fields twice costs.
 */

import type {
  Context,
  ModelContext,
  RunContext,
  ToolContext,
  TraceAct,
  TraceRecord,
  ValueChange,
} from '../index.js';
import { callParts, recordingOf } from '../kit/index.js';
import type { Act, Difference, Slot } from './kept-acts.js';
import type { Recorder } from './recorder.js';

export class HookCall {
  declare readonly slot: Slot;
  declare readonly ctx: Context;
  declare readonly recorder: Recorder;
  /** The parts of the call when the hook began. */
  declare readonly parts: unknown;
  declare readonly started: number;
  /** Its own time in milliseconds, as far as it is in no record yet. */
  declare protected ms: number;

  constructor(slot: Slot, ctx: Context) {
    this.slot = slot;
    this.ctx = ctx;
    this.ms = 0;
    this.recorder = recorderOf(ctx);
    this.parts = callParts(ctx);
    this.started = this.recorder.started();
  }

  /** Records what it did. */
  add(did: TraceAct, more?: Partial<TraceRecord> | Difference, n?: number): Act {
    const { recorder, slot, ctx, started, ms } = this;
    this.ms = 0;
    return recorder.add(slot, did, ctx, started, ms, more, n);
  }

  changes(before: unknown, after: unknown): readonly ValueChange[] {
    return this.recorder.telling.changes(before, after);
  }
}

/** A hook that returns an answer, or changes its context. It calls nothing further in. */
export class PlainCall extends HookCall {
  /** What the hook was given. */
  declare readonly subject: any;
  /** The result of the call when the hook began. */
  declare readonly result: unknown;

  constructor(slot: Slot, ctx: Context, subject: unknown) {
    super(slot, ctx);
    this.subject = subject;
    this.result = (ctx as LayerContext).result;
  }

  end(): void {
    this.ms = this.recorder.now() - this.started;
    this.recorder.spent(this.slot, this.ms);
  }
}

export function recorderOf(ctx: Context): Recorder {
  return recordingOf(ctx) as Recorder;
}

export type LayerContext = ModelContext | ToolContext | RunContext;

export function isModelCall(ctx: Context): ctx is ModelContext {
  return ctx.seam === 'model';
}

export function isToolCall(ctx: Context): ctx is ToolContext {
  return ctx.seam === 'tool';
}
