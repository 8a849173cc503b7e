/** Listens to the streams of a model call and says how the one that counts was cut into pieces. */

import type { HeardPart } from '../../cassette/pieces.js';
import type { ModelContext, ModelPart, ModelResponse } from '../../index.js';
import { ResponseAssembler, responseParts } from '../../kit/index.js';

type Blocks = ResponseAssembler['content'];

/** What was heard of one stream. */
export class Heard {
  readonly parts: HeardPart[] = [];
  ended = false;
  private readonly assembler = new ResponseAssembler('The recorded stream');

  add(part: ModelPart): void {
    this.parts.push({ part, block: this.assembler.add(part) });
  }

  get blocks(): Blocks {
    return this.assembler.content;
  }
}

/** Hears every stream that reaches this layer: each attempt further in, and answers that did not stream. */
export function listen(ctx: ModelContext): Heard[] {
  const streams: Heard[] = [];
  ctx.transform(() => {
    const heard = new Heard();
    streams.push(heard);
    return {
      part(part, emit) {
        heard.add(part);
        emit(part);
      },
      end() {
        heard.ended = true;
      },
    };
  });
  return streams;
}

/** The stream of this response. Guards may have changed its texts meanwhile, but not its blocks. */
export function streamOf(response: ModelResponse, streams: readonly Heard[]): Heard {
  const alike = streams.filter(({ ended, blocks }) => ended && sameBlocks(blocks, response.content, false));
  const found = alike.findLast(({ blocks }) => sameBlocks(blocks, response.content, true)) ?? alike.at(-1);
  if (found) return found;
  const whole = new Heard();
  for (const part of responseParts(response)) if (part.type !== 'finish') whole.add(part);
  return whole;
}

function sameBlocks(blocks: Blocks, content: ModelResponse['content'], texts: boolean): boolean {
  return (
    blocks.length === content.length &&
    blocks.every((block, i) => {
      const other = content[i] as Blocks[number];
      if (block.type !== other.type) return false;
      return !texts || (block.text === other.text && block.arguments === other.arguments);
    })
  );
}
