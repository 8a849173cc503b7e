/** The stream transforms of layers, applied to a stream, or to a response that did not stream. */

import type { ModelContext } from '../context/context.js';
import { AlliumError, isThenable, shown } from '../lib/errors.js';
import { deepFreeze, type ModelResponse } from '../messages/messages.js';
import { type ModelPart, modelName, type StreamTransform } from '../messages/model.js';
import { ResponseAssembler, responseParts } from './assemble.js';

/** The transforms of a call, each with what it assembles; undefined if no layer registered one. */
export function stagesOf(ctx: ModelContext, raw: ResponseAssembler): Stages | undefined {
  const made: Stage[] = [];
  for (let at: ModelContext | undefined = ctx; at; at = at._outer)
    if (at._transforms)
      made.push({ ctx: at, assembler: new ResponseAssembler(modelName(ctx.model), ctx._run.limits) });
  return made.length > 0 ? new Stages(made, raw) : undefined;
}

interface Stage {
  readonly ctx: ModelContext;
  readonly assembler: ResponseAssembler;
}

/** The way of a part: raw assembly, then the transforms of each layer from the inside out, then the consumer. */
export class Stages {
  constructor(
    private readonly made: readonly Stage[],
    private readonly raw: ResponseAssembler,
  ) {}

  /** The response after all transforms. */
  get last(): ResponseAssembler {
    return this.made.at(-1)!.assembler;
  }

  /** Returns a function that takes the parts of the model. */
  taker(live: { part(part: ModelPart, block: number): void } | undefined): (part: ModelPart) => void {
    const { last } = this;
    let out = (part: ModelPart): void => {
      const block = last.add(part);
      if (block >= 0) live?.part(part, block);
    };
    for (let i = this.made.length - 1; i >= 0; i--) {
      const { ctx } = this.made[i]!;
      const transform = chain(ctx, out);
      const before = i === 0 ? this.raw : this.made[i - 1]!.assembler;
      out = (part) => {
        before.add(part);
        transform(part);
      };
    }
    return out;
  }

  /** Remembers the response after each stage, for the layer whose transform it was. Returns the last one. */
  finish(response: ModelResponse): ModelResponse {
    let current = response;
    for (const { ctx, assembler } of this.made) {
      const next = deepFreeze({ ...response, content: assembler.response().content });
      ctx._run.judgements.stages ??= new WeakMap();
      ctx._run.judgements.stages.set(current.content, { ctx, response: next });
      current = next;
    }
    return current;
  }
}

/** Applies transforms to a response that did not stream through them: one that was cached, preset or replaced. */
export function transformed(response: ModelResponse, owner: ModelContext): ModelResponse {
  const assembler = new ResponseAssembler(response.model ?? 'response', owner._run.limits);
  const first = chain(owner, (part) => void assembler.add(part));
  for (const part of responseParts(response)) first(part);
  const { content } = assembler.response();
  return { ...response, content };
}

/**
 * Plain functions from the first transform of a context to `out`. `finish` makes each transform end before it goes on.
 * What a transform throws is attributed to the middleware of that context; what `out` throws is not.
 */
function chain(owner: ModelContext, out: (part: ModelPart) => void): (part: ModelPart) => void {
  return owner._transforms!.reduceRight((next, factory) => {
    const link = new TransformLink(factory, next, owner);
    return (part) => link.take(part);
  }, out);
}

/** A record, so that the compiler complains if a kind is missing. */
const PARTS: Readonly<Record<ModelPart['type'], true>> = {
  text: true,
  thinking: true,
  'tool-call': true,
  'tool-call-delta': true,
  file: true,
  provider: true,
  finish: true,
};

/** One transform in the chain. */
class TransformLink {
  private readonly transform: StreamTransform;
  private readonly by: string | undefined;
  /** The transform itself is running, not what comes after it. */
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
      this.transform = makeTransform(factory);
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
    if (PARTS[part?.type] !== true)
      throw misused(`emitted ${shown(part)}, which is not a part of a model stream`);
    this.inside = false;
    this.next(part);
    this.inside = true;
  };

  /** It emitted too late. Nothing is running that could fail now, so the next part fails, if there is one. */
  private tooLate(): void {
    if (this.late) return;
    this.late = true;
    if (this.by !== undefined) this.owner._run.note(this.by, 'emitted a part too late, so it is lost');
  }

  private blamed(error: unknown): unknown {
    const { by, owner } = this;
    return this.inside && by !== undefined ? owner._blame(by, 'transform', error) : error;
  }
}

function makeTransform(factory: () => StreamTransform): StreamTransform {
  const transform = factory();
  if (typeof transform?.part === 'function') return transform;
  silence(transform);
  throw new AlliumError(
    'INVALID_HOOK_RESULT',
    `A factory given to ctx.transform() returned ${shown(transform)}. Return { part(part, emit), end?(emit) }.`,
  );
}

/** Transforms are synchronous: a stream does not wait for them, so what a promise brings would be lost. */
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
