/** An answer as parts of a stream of the AI SDK: while it is written, and what is left when it is complete. */
import type { AgentEvent, ModelPart } from 'allium';
import type { Loose, SpecVersion } from './language-model.js';
import { contentPart } from './to-content.js';

/** The parts of an answer as they began: those that come whole, and the kinds of the others. */
export class BegunParts {
  private readonly parts: ModelPart[] = [];
  private readonly open = { text: new Set<unknown>(), thinking: new Set<unknown>() };

  take(part: ModelPart): void {
    if (part.type === 'finish' || part.type === 'tool-call-delta') return;
    if ((part.type === 'text' || part.type === 'thinking') && this.goesOn(part)) return;
    this.parts.push(part);
  }

  /** Is it a piece of a block that has begun? Without a key it belongs to the last one. */
  private goesOn({ type, block, end }: Extract<ModelPart, { type: 'text' | 'thinking' }>): boolean {
    if (block === undefined) return this.parts.at(-1)?.type === type;
    const known = this.open[type].has(block);
    if (end) this.open[type].delete(block);
    else this.open[type].add(block);
    return known;
  }

  at(block: number): ModelPart | undefined {
    return this.parts[block];
  }
}

export interface LiveOptions {
  readonly version: SpecVersion;
  /** Guards may still change what is there. */
  readonly isGuarded: boolean;
  begun(block: number): ModelPart | undefined;
}

/**
 * Keeps the order of the answer, since providers refuse thinking, for example, that doesn't stand before what it led to. So
 * text after a call waits until the answer is complete. Text and thinking end then, too: only then is their metadata known.
 */
export class LiveParts {
  /** Blocks that have begun and go on. */
  private readonly open = new Set<number>();
  /** Blocks that were shown whole. */
  private readonly done = new Set<number>();
  /** The first block that isn't shown. */
  private next = 0;
  private isHeld = false;

  constructor(private readonly options: LiveOptions) {}

  *of(event: AgentEvent): Generator<Loose> {
    if (event.type !== 'message_update' || event.delta.type === 'tool-call') return;
    const { type, block, text: delta } = event.delta;
    const kind = type === 'text' ? 'text' : 'reasoning';
    const id = String(block);
    if (!this.open.has(block)) {
      while (this.next < block && !this.isHeld) yield* this.before(this.next++);
      if (this.isHeld) return;
      this.next = block + 1;
      this.open.add(block);
      yield { type: `${kind}-start`, id };
    }
    yield { type: `${kind}-delta`, id, delta };
  }

  /** A block without text, which comes before one with text. */
  private *before(block: number): Generator<Loose> {
    const { version, isGuarded, begun } = this.options;
    const part = begun(block);
    if (part?.type === 'thinking') {
      this.open.add(block);
      const own = isGuarded ? undefined : part.metadata?.provider;
      yield {
        type: 'reasoning-start',
        id: String(block),
        ...(own !== undefined && { providerMetadata: own }),
      };
    } else if (!isGuarded && (part?.type === 'file' || part?.type === 'provider')) {
      this.done.add(block);
      const own = part.metadata?.provider;
      yield { ...contentPart(part, version), ...(own !== undefined && { providerMetadata: own }) };
    } else this.isHeld = true;
  }

  /** What of the whole answer isn't shown yet. */
  *rest(content: readonly Loose[]): Generator<Loose> {
    for (const [block, part] of content.entries()) {
      if (this.done.has(block)) continue;
      const { type, text, ...metadata } = part;
      if (type !== 'text' && type !== 'reasoning') {
        yield part;
        continue;
      }
      const id = String(block);
      if (!this.open.has(block)) {
        yield { type: `${type}-start`, id };
        yield { type: `${type}-delta`, id, delta: text };
      }
      yield { type: `${type}-end`, id, ...metadata };
    }
  }
}
