/** Stream transforms that layers registered: what they make of a stream, or of a response that did not stream. */
import { Assembler, partsOf } from './assemble.js';
import type { ModelContext } from './context.js';
import { AlliumError, isThenable, shown } from './errors.js';
import { owned } from './layer.js';
import type { LiveStream } from './live.js';
import { deepFreeze, type ModelResponse } from './messages.js';
import { type ModelPart, modelName, type StreamTransform } from './model.js';

/** Did any layer register a transform of this call? */
export function isTransformed(ctx: ModelContext): boolean {
  if (!ctx._call.transformed) return false;
  for (let at: ModelContext | undefined = ctx; at !== undefined; at = at._outer)
    if (at._transforms !== undefined) return true;
  return false;
}

/** The way of a part: raw assembly, then the transforms of each layer from the inside out, then the consumer. */
export class Stages {
  private readonly made: { readonly ctx: ModelContext; readonly assembler: Assembler }[] = [];

  constructor(
    ctx: ModelContext,
    private readonly raw: Assembler,
  ) {
    for (let at: ModelContext | undefined = ctx; at; at = at._outer) {
      if (at._transforms) this.made.push({ ctx: at, assembler: new Assembler(modelName(ctx.model)) });
    }
  }

  /** What the stream comes to after all transforms. */
  get last(): Assembler {
    return this.made.at(-1)?.assembler ?? this.raw;
  }

  /** Takes the parts of the model. */
  taker(live: LiveStream | undefined): (part: ModelPart) => void {
    let out = taker(this.last, live);
    for (let i = this.made.length - 1; i >= 0; i--) {
      const { ctx } = this.made[i]!;
      const transform = chain(ctx._transforms!, out, ctx);
      const before = i === 0 ? this.raw : this.made[i - 1]!.assembler;
      out = (part) => {
        before.add(part);
        transform(part);
      };
    }
    return out;
  }

  /** Notes what each stage came to, for the layer whose transform it was; returns what came out at the end. */
  finish(response: ModelResponse): ModelResponse {
    let current = response;
    for (const { ctx, assembler } of this.made) {
      const next = deepFreeze({ ...response, content: assembler.response().content });
      ctx._run.stages ??= new WeakMap();
      ctx._run.stages.set(current.content, { ctx, response: next });
      current = next;
    }
    return current;
  }
}

/** Where nothing transforms, parts go straight from the assembly to the consumer. */
export function taker(assembler: Assembler, live: LiveStream | undefined): (part: ModelPart) => void {
  if (live === undefined) return (part) => void assembler.add(part);
  return (part) => {
    const block = assembler.add(part);
    if (block >= 0) live.part(part, block);
  };
}

/** Applies transforms to a response that did not stream through them: one that was cached, preset or replaced. */
export function transformed(
  response: ModelResponse,
  factories: readonly (() => StreamTransform)[],
  owner: ModelContext,
): ModelResponse {
  const assembler = new Assembler(response.model ?? 'response');
  const first = chain(factories, (part) => void assembler.add(part), owner);
  for (const part of partsOf(response)) first(part);
  const { content } = assembler.response();
  return { ...response, content };
}

/**
 * Plain functions from the first transform to `out`. `finish` makes each transform end before it goes on. What a
 * transform throws is attributed to the middleware of its context; what `out` throws is not.
 */
export function chain(
  factories: readonly (() => StreamTransform)[],
  out: (part: ModelPart) => void,
  owner: ModelContext,
): (part: ModelPart) => void {
  return factories.reduceRight<(part: ModelPart) => void>((next, factory) => {
    const link = new TransformLink(factory, next, owner);
    return (part) => link.take(part);
  }, out);
}

/** A record, so that the compiler misses a kind that is not in it. */
const PARTS: Readonly<Record<ModelPart['type'], true>> = {
  text: true,
  thinking: true,
  'tool-call': true,
  'tool-call-delta': true,
  file: true,
  provider: true,
  finish: true,
};

/** One transform in its place. */
class TransformLink {
  private readonly transform: StreamTransform;
  private readonly by: string | undefined;
  /** The transform itself is at work, not what comes after it. */
  private inside = false;
  /** It was handed a part, and has not returned yet. */
  private called = false;
  private late = false;

  constructor(
    factory: () => StreamTransform,
    private readonly next: (part: ModelPart) => void,
    private readonly owner: ModelContext,
  ) {
    this.by = owner._run.nameAt(owner._position);
    try {
      this.inside = true;
      this.transform = made(factory);
    } catch (error) {
      throw this.blamed(error);
    }
  }

  take(part: ModelPart): void {
    this.inside = this.called = true;
    try {
      if (this.late) throw misused('called emit() after part() had returned, so what it emitted is lost');
      if (part.type !== 'finish') checkReturned(this.transform.part(part, this.emit));
      else {
        checkReturned(this.transform.end?.(this.emit));
        this.emit(part);
      }
    } catch (error) {
      throw this.blamed(error);
    } finally {
      this.called = false;
    }
  }

  private readonly emit = (part: ModelPart): void => {
    if (!this.called) {
      this.tooLate();
      return;
    }
    if (PARTS[part?.type] !== true) throw misused(`emitted ${shown(part)}, which is no part of a stream`);
    this.inside = false;
    this.next(part);
    this.inside = true;
  };

  /** Nothing of the run is at work that could fail: the next part does, if there is one. */
  private tooLate(): void {
    if (this.late) return;
    this.late = true;
    if (this.by !== undefined) this.owner._run.note(this.by, 'emitted a part too late: it is lost');
  }

  private blamed(error: unknown): unknown {
    const { by, owner } = this;
    return this.inside && by !== undefined ? owned(by, 'transform', error, owner) : error;
  }
}

function made(factory: () => StreamTransform): StreamTransform {
  const transform = factory();
  if (typeof transform?.part === 'function') return transform;
  silence(transform);
  throw new AlliumError(
    'INVALID_HOOK_RESULT',
    `A factory given to ctx.transform() returned ${shown(transform)}. Return { part(part, emit), end?(emit) }.`,
  );
}

/** Transforms work at once: a stream does not wait for them, so what a promise brings would be lost. */
function checkReturned(returned: unknown): void {
  if (returned === undefined) return;
  if (typeof (returned as { type?: unknown } | null)?.type === 'string')
    throw misused('returned a part, which is lost');
  if (!isThenable(returned)) return;
  silence(returned);
  throw misused('returned a promise');
}

function misused(what: string): AlliumError {
  return new AlliumError(
    'INVALID_HOOK_RESULT',
    `A transform ${what}. part() and end() of a transform return nothing and must not be async: emit before you return.`,
  );
}

function silence(value: unknown): void {
  if (isThenable(value)) value.then(undefined, () => {});
}
