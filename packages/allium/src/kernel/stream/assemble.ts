/** Puts the parts of a stream together into a response. */
import { AlliumError, isRecord, shown } from '../lib/errors.js';
import { ARGS_CHARS, excessOf, leftOutMarker } from '../messages/large-arguments.js';
import { lackOfJson } from '../messages/message-input.js';
import type { AssistantContent, Metadata, ModelResponse, Usage } from '../messages/messages.js';
import { FINISH_REASONS, NO_USAGE } from '../messages/messages.js';
import type { ModelPart } from '../messages/model.js';
import type { Limits } from '../protocol/limits.js';

/** A content block that still grows. */
type Block = {
  type: AssistantContent['type'];
  id?: string;
  text?: string;
  arguments?: string;
  metadata?: Metadata;
};

/** Long texts are put together from pieces of about this many characters: see `append`. */
const PIECE = 1024;

/** For responses that were within the limits when they streamed. */
const NO_LIMITS: Limits = { argsDepth: Number.POSITIVE_INFINITY, argsChars: Number.POSITIVE_INFINITY };

const NO_BLOCKS: Block[] = Object.freeze([]) as never;

/**
 * Puts the parts of a stream together to a response. `add(part)` throws `MODEL_STREAM_INVALID` for anything that isn't a
 * part.
 */
export class ResponseAssembler {
  private blocks: Block[] = NO_BLOCKS;
  /** Blocks by key, separately for each kind: providers number them independently. */
  private keyed: { [K in 'text' | 'thinking']?: Map<string | number, number> } | undefined = undefined;
  private keyedBlocks: Set<number> | undefined = undefined;
  private lastType: Block['type'] | undefined = undefined;
  /** Text of block `grown` that is not in the block yet. */
  private tail = '';
  private grown = -1;
  /**
   * The last block is text and was the last to grow, so more text needs no lookup. Nearly every part is like that.
   */
  private goesOn = false;
  private finish: (ModelPart & { type: 'finish' }) | undefined = undefined;

  /** Some arguments were too large and were left out, so the response isn't what was shown. */
  hasLeftOut = false;

  constructor(
    private readonly model: string,
    private readonly limits: Limits = NO_LIMITS,
  ) {}

  /** The content so far. It grows with every part. */
  get content(): readonly Block[] {
    this.flushTail();
    return this.blocks;
  }

  /** Takes a part and returns the index of its block, -1 for `finish`. */
  add(part: ModelPart): number {
    if (this.goesOn && part?.type === 'text' && isPlain(part)) {
      this.tail += part.text;
      if (this.tail.length >= PIECE) this.flatten();
      return this.grown;
    }
    const index = this.addOther(part);
    this.goesOn = this.lastType === 'text' && this.grown === this.blocks.length - 1 && !this.finish;
    return index;
  }

  private addOther(part: ModelPart): number {
    if (this.finish) throw this.bad(part, 'it came after `finish`');
    switch (part?.type) {
      case 'text':
      case 'thinking':
        return this.addText(part);
      case 'tool-call':
        if (typeof part.name !== 'string' || part.name === '')
          throw this.bad(part, '`name` must be non-empty text');
        if (typeof part.arguments !== 'string') throw this.bad(part, '`arguments` must be JSON text');
        return this.open(callOf(part));
      case 'tool-call-delta': {
        const index = this.blocks.findLastIndex(
          (block) => block.type === 'tool-call' && block.id === part.id,
        );
        if (index < 0) throw this.bad(part, `no tool-call with id ${shown(part.id)} was begun`);
        if (typeof part.arguments !== 'string') throw this.bad(part, '`arguments` must be text');
        const block = this.blocks[index]!;
        // Arguments that are too long are left out anyway.
        if (block.arguments!.length <= (this.limits.argsChars ?? ARGS_CHARS))
          block.arguments += part.arguments;
        return index;
      }
      case 'file':
        if (typeof part.data !== 'string' || typeof part.mimeType !== 'string')
          throw this.bad(part, '`data` and `mimeType` must be text');
        return this.open(only(part, ['type', 'data', 'mimeType', 'name', 'metadata']));
      case 'provider':
        if (typeof part.kind !== 'string') throw this.bad(part, '`kind` must be text');
        return this.open(only(part, ['type', 'kind', 'value', 'metadata']));
      case 'finish':
        if (!FINISH_REASONS.includes(part.reason))
          throw this.bad(part, `\`reason\` must be one of ${FINISH_REASONS.join(', ')}`);
        this.finish = part;
        return -1;
      default:
        throw this.bad(
          part,
          'its `type` must be text, thinking, tool-call, tool-call-delta, file, provider or finish',
        );
    }
  }

  /** May text for this block still come when another one has begun? */
  isKeyed(index: number): boolean {
    return this.keyedBlocks?.has(index) ?? false;
  }

  /** The usage that came with `finish`, even if the stream finished with an error. */
  get told(): Usage {
    return this.finish ? toUsage(this.finish.usage, this.model) : NO_USAGE;
  }

  /** The response. The stream must have finished. */
  response(): ModelResponse {
    if (!this.finish) {
      throw new AlliumError(
        'MODEL_STREAM_CUT',
        `The stream of ${this.model} ended without a finish part after ${this.blocks.length} content blocks. Try again.`,
      );
    }
    const { reason, usage, metadata } = this.finish;
    if (reason === 'error') throw failedStream(this.model);
    if (this.blocks === NO_BLOCKS) this.blocks = [];
    this.leaveOut();
    const content = this.content as AssistantContent[];
    const plain = {
      role: 'assistant' as const,
      content,
      usage: toUsage(usage, this.model),
      stopReason: reason,
      model: this.model,
    };
    const response = metadata === undefined ? plain : { ...plain, metadata };
    const wanted = this.isRich ? (lackOfMetadata(response) ?? lackOfJson(response)) : undefined;
    if (wanted)
      throw new AlliumError('MODEL_STREAM_INVALID', `Expected ${this.model} to yield parts with ${wanted}.`);
    return response;
  }

  /**
   * Leaves out arguments that are too large. They would be sent with every later request, and may be nested too deep
   * for that.
   */
  private leaveOut(): void {
    const { blocks } = this;
    // By index, here and where every answer passes: a loop over values costs several objects until it is optimised.
    for (let i = 0; i < blocks.length; i++) {
      const block = blocks[i]!;
      const excess = block.type === 'tool-call' && excessOf(block.arguments!, this.limits);
      if (!excess) continue;
      block.arguments = leftOutMarker(excess);
      this.hasLeftOut = true;
    }
  }

  /** Does it hold values that only the provider understands? */
  private get isRich(): boolean {
    if (this.finish?.metadata !== undefined) return true;
    const { blocks } = this;
    for (let i = 0; i < blocks.length; i++)
      if (blocks[i]!.type === 'provider' || blocks[i]!.metadata !== undefined) return true;
    return false;
  }

  private addText(part: ModelPart & { type: 'text' | 'thinking' }): number {
    if (typeof part.text !== 'string') throw this.bad(part, '`text` must be a string');
    const index = this.blockOf(part);
    this.append(index, part.text);
    // Another block may begin under the same key.
    if (part.end && part.block !== undefined) this.keyed?.[part.type]?.delete(part.block);
    if (part.type === 'thinking') {
      const block = this.blocks[index] as { signature?: string; redacted?: boolean };
      if (part.signature !== undefined) {
        if (typeof part.signature !== 'string') throw this.bad(part, '`signature` must be text');
        block.signature = part.signature;
      }
      if (part.redacted) block.redacted = true;
    }
    if (part.metadata !== undefined) {
      if (!isMetadata(part.metadata)) throw this.bad(part, '`metadata` must be an object');
      const block = this.blocks[index]!;
      block.metadata = { ...block.metadata, ...part.metadata };
    }
    return index;
  }

  /**
   * A string built from many small pieces is a tree of them, which the garbage collector has to carry along.
   * Flattening it now and then lets the pieces die young.
   */
  private append(index: number, text: string): void {
    if (index !== this.grown) {
      this.flushTail();
      this.grown = index;
    }
    this.tail += text;
    if (this.tail.length >= PIECE) this.flatten();
  }

  private flatten(): void {
    this.tail.charCodeAt(0);
    this.flushTail();
  }

  private flushTail(): void {
    if (this.tail === '') return;
    this.blocks[this.grown]!.text += this.tail;
    this.tail = '';
  }

  private blockOf({ type, block: key }: { type: 'text' | 'thinking'; block?: string | number }): number {
    if (key === undefined)
      return this.lastType === type ? this.blocks.length - 1 : this.open({ type, text: '' });
    const found = this.keyed?.[type]?.get(key);
    if (found !== undefined) return found;
    const index = this.open({ type, text: '' });
    this.keyed ??= {};
    this.keyed[type] ??= new Map();
    this.keyed[type].set(key, index);
    this.keyedBlocks ??= new Set();
    this.keyedBlocks.add(index);
    return index;
  }

  private open(block: Block): number {
    // Most answers have one block; a list that grows from nothing takes room for many.
    if (this.blocks === NO_BLOCKS) this.blocks = [block];
    else this.blocks.push(block);
    this.lastType = block.type;
    return this.blocks.length - 1;
  }

  private bad(part: unknown, why: string): AlliumError {
    return new AlliumError('MODEL_STREAM_INVALID', `${this.model} yielded ${shown(part)}: ${why}.`, {
      data: { part },
    });
  }
}

function isPlain(part: ModelPart & { type: 'text' }): boolean {
  return part.block === undefined && part.metadata === undefined && typeof part.text === 'string';
}

/** Some clients write null for none. */
function isMetadata(value: unknown): boolean {
  return value === null || isRecord(value);
}

function lackOfMetadata({ metadata, content }: ModelResponse): string | undefined {
  const fine = [metadata, ...content.map((part) => part.metadata)].every(
    (one) => one === undefined || isMetadata(one),
  );
  return fine ? undefined : '`metadata` that is an object';
}

function callOf({ id, name, arguments: args, metadata }: ModelPart & { type: 'tool-call' }): Block {
  const plain = { type: 'tool-call' as const, id: typeof id === 'string' ? id : '', name, arguments: args };
  return metadata === undefined ? plain : { ...plain, metadata };
}

/** A copy without other fields: no guard would look at them. */
function only<P extends ModelPart>(part: P, fields: readonly string[]): Block {
  return Object.fromEntries(Object.entries(part).filter(([field]) => fields.includes(field))) as Block;
}

/** Reports of models that left out input or output tokens, by the usage made from them. */
const told = new WeakMap<Usage, Partial<Usage>>();

/**
 * The model's report, if it left out input or output tokens, which are 0 in the usage. Undefined if it was complete.
 */
export function partialUsage(usage: Usage): Partial<Usage> | undefined {
  return usage.inputTokens > 0 && usage.outputTokens > 0 ? undefined : told.get(usage);
}

function toUsage(usage: Partial<Usage> | undefined, model: string): Usage {
  if (usage === undefined || usage === null) return NO_USAGE;
  const made = counted(usage, model);
  if (usage.inputTokens !== undefined && usage.outputTokens !== undefined) return made;
  const { cacheRead, cacheWrite, totalTokens } = made;
  // If only one of them is missing, it follows from the total.
  if (usage.totalTokens !== undefined) {
    const rest = Math.max(0, totalTokens - cacheRead - cacheWrite - made.inputTokens - made.outputTokens);
    if (usage.inputTokens !== undefined) return { ...made, outputTokens: rest };
    if (usage.outputTokens !== undefined) return { ...made, inputTokens: rest };
  }
  told.set(made, usage);
  return made;
}

function counted(given: Partial<Usage>, model: string): Usage {
  // Anything else counts as empty and is reported below.
  const usage: Partial<Usage> = typeof given === 'object' ? given : { totalTokens: Number.NaN };
  const { inputTokens = 0, outputTokens = 0, cacheRead = 0, cacheWrite = 0 } = usage;
  if (isCount(inputTokens) && isCount(outputTokens) && isCount(cacheRead) && isCount(cacheWrite)) {
    const { totalTokens = inputTokens + outputTokens + cacheRead + cacheWrite } = usage;
    if (isCount(totalTokens)) return { inputTokens, outputTokens, cacheRead, cacheWrite, totalTokens };
  }
  throw new AlliumError(
    'MODEL_STREAM_INVALID',
    `${model} reported token usage that is not made of numbers ≥ 0: ${shown(given)}.`,
  );
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value < Number.POSITIVE_INFINITY;
}

/** The parts that would have streamed this response: for a model that has an answer already. */
export function* responseParts(response: ModelResponse): Generator<ModelPart> {
  for (const [index, block] of response.content.entries()) {
    yield block.type === 'text' || block.type === 'thinking' ? { ...block, block: `#${index}` } : block;
  }
  yield {
    type: 'finish',
    reason: response.stopReason ?? 'stop',
    usage: response.usage,
    ...(response.metadata && { metadata: response.metadata as Metadata }),
  };
}

/** The answer ended with an error: the call has failed and can be tried again. */
export function failedStream(model: string): AlliumError {
  return new AlliumError(
    'MODEL_STREAM_FAILED',
    `The provider ended the answer of ${model} with an error. Try again.`,
  );
}
