/** Stream transforms that layers registered: what they make of a stream, or of a response that did not stream. */
import { Assembler, partsOf } from './assemble.js';
import type { ModelContext } from './context.js';
import { AlliumError, shown } from './errors.js';
import { owned } from './layer.js';
import type { LiveStream } from './live.js';
import { deepFreeze, type ModelResponse } from './messages.js';
import { type ModelPart, modelName, type StreamTransform } from './model.js';

/** Did any layer register a transform of this call? */
export function isTransformed(ctx: ModelContext): boolean {
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
  const by = owner._run.nameAt(owner._position);
  return factories.reduceRight<(part: ModelPart) => void>((next, factory) => {
    let inside = true;
    const blame = (error: unknown): never => {
      throw inside && by !== undefined ? owned(by, 'transform', error, owner) : error;
    };
    const emit = (part: ModelPart): void => {
      inside = false;
      next(part);
      inside = true;
    };
    const transform = made(factory, blame);
    return (part) => {
      inside = true;
      try {
        if (part.type !== 'finish') transform.part(part, emit);
        else {
          transform.end?.(emit);
          emit(part);
        }
      } catch (error) {
        blame(error);
      }
    };
  }, out);
}

function made(factory: () => StreamTransform, blame: (error: unknown) => never): StreamTransform {
  try {
    const transform = factory();
    if (typeof transform?.part === 'function') return transform;
    throw new AlliumError(
      'INVALID_HOOK_RESULT',
      `A factory given to ctx.transform() returned ${shown(transform)}. Return { part(part, emit), end?(emit) }.`,
    );
  } catch (error) {
    return blame(error);
  }
}
