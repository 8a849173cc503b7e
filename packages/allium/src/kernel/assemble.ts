/** Puts the parts of a stream together into a response. */
import { AlliumError, shown } from './errors.js';
import type { AssistantContent, FinishReason, Metadata, ModelResponse, Usage } from './messages.js';
import { NO_USAGE } from './messages.js';
import type { ModelPart } from './model.js';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type Block = Mutable<AssistantContent> & { text?: string; arguments?: string };

const FINISH_REASONS: readonly FinishReason[] = ['stop', 'tool-calls', 'length', 'content-filter', 'error', 'other', 'aborted'];

/** Collects parts; says which block each belongs to; complains about what is not a part. */
export class Assembler {
  readonly content: Block[] = [];
  private keyed: Map<string | number, number> | undefined;
  private last = -1;
  private finish: (ModelPart & { type: 'finish' }) | undefined;

  constructor(private readonly model: string) {}

  /** Takes a part and returns the index of its block, -1 for `finish`. */
  add(part: ModelPart): number {
    if (this.finish) throw this.bad(part, 'it came after `finish`');
    switch (part?.type) {
      case 'text':
      case 'thinking': {
        if (typeof part.text !== 'string') throw this.bad(part, '`text` must be a string');
        const index = this.blockOf(part);
        const block = this.content[index] as Block & { text: string };
        block.text += part.text;
        if (part.type === 'thinking') {
          const thinking = block as { signature?: string; redacted?: boolean };
          if (part.signature !== undefined) thinking.signature = part.signature;
          if (part.redacted) thinking.redacted = true;
        }
        if (part.metadata) block.metadata = { ...block.metadata, ...part.metadata };
        return index;
      }
      case 'tool-call':
        if (typeof part.name !== 'string' || part.name === '') throw this.bad(part, '`name` must be non-empty text');
        if (typeof part.arguments !== 'string') throw this.bad(part, '`arguments` must be JSON text');
        return this.open(part.id, { ...part, id: typeof part.id === 'string' ? part.id : '' } as Block);
      case 'tool-call-delta': {
        const index = this.keyed?.get(part.id);
        const block = index === undefined ? undefined : this.content[index];
        if (block?.type !== 'tool-call') throw this.bad(part, `no tool-call with id ${shown(part.id)} was begun`);
        if (typeof part.arguments !== 'string') throw this.bad(part, '`arguments` must be text');
        block.arguments += part.arguments;
        return index!;
      }
      case 'file':
        if (typeof part.data !== 'string' || typeof part.mimeType !== 'string') throw this.bad(part, '`data` and `mimeType` must be text');
        return this.open(undefined, { ...part } as Block);
      case 'provider':
        return this.open(undefined, { ...part } as Block);
      case 'finish':
        if (!FINISH_REASONS.includes(part.reason)) throw this.bad(part, `\`reason\` must be one of ${FINISH_REASONS.join(', ')}`);
        this.finish = part;
        return -1;
      default:
        throw this.bad(part, 'its `type` is unknown');
    }
  }

  get finished(): boolean {
    return this.finish !== undefined;
  }

  /** The response. The stream must have finished. */
  response(): ModelResponse {
    if (!this.finish) {
      throw new AlliumError('MODEL_STREAM_CUT', `The stream of ${this.model} ended without a finish part after ${this.content.length} content blocks. Try again.`);
    }
    const { reason, usage, metadata } = this.finish;
    return {
      role: 'assistant',
      content: this.content as AssistantContent[],
      usage: toUsage(usage, this.model),
      stopReason: reason,
      model: this.model,
      ...(metadata && { metadata }),
    };
  }

  private blockOf(part: { type: 'text' | 'thinking'; block?: string | number }): number {
    if (part.block !== undefined) {
      const found = this.keyed?.get(part.block);
      if (found !== undefined && this.content[found]!.type === part.type) return found;
    } else if (this.last >= 0 && this.content[this.last]!.type === part.type) return this.last;
    return this.open(part.block, { type: part.type, text: '' } as Block);
  }

  private open(key: string | number | undefined, block: Block): number {
    this.last = this.content.push(block) - 1;
    if (key !== undefined) {
      this.keyed ??= new Map();
      this.keyed.set(key, this.last);
    }
    return this.last;
  }

  private bad(part: unknown, why: string): AlliumError {
    return new AlliumError('MODEL_STREAM_INVALID', `${this.model} yielded ${shown(part)}: ${why}.`, { data: { part } });
  }
}

function toUsage(usage: Partial<Usage> | undefined, model: string): Usage {
  if (!usage) return NO_USAGE;
  const { inputTokens = 0, outputTokens = 0, cacheRead = 0, cacheWrite = 0 } = usage;
  const { totalTokens = inputTokens + outputTokens + cacheRead + cacheWrite } = usage;
  if (!(inputTokens >= 0 && outputTokens >= 0 && cacheRead >= 0 && cacheWrite >= 0 && totalTokens >= 0)) {
    throw new AlliumError('MODEL_STREAM_INVALID', `${model} reported a usage that is not made of numbers ≥ 0: ${shown(usage)}.`);
  }
  return { inputTokens, outputTokens, cacheRead, cacheWrite, totalTokens };
}

/** A whole response as the parts that would have streamed it. */
export function* partsOf(response: ModelResponse): Generator<ModelPart> {
  for (const [index, block] of response.content.entries()) {
    yield block.type === 'text' || block.type === 'thinking' ? { ...block, block: `#${index}` } : block;
  }
  yield { type: 'finish', reason: response.stopReason, usage: response.usage, ...(response.metadata && { metadata: response.metadata as Metadata }) };
}
