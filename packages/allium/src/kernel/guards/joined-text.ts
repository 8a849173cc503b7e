/** All text of one kind in a streaming response. Readers join its blocks, so guards judge them as one text. */

import type { SpanStage } from './redact-stream.js';

/** Makes one stage per guard, in order. Each passes text on to the next, and the last one to `out`. */
export type MakeStages = (out: (text: string) => void, outNext: () => void) => SpanStage[];

export class JoinedText {
  /** Indices of its blocks in the content. */
  readonly blocks: number[] = [];
  /** By block: the released text. */
  readonly safe: string[] = [];
  /** By block: text that waits for the end of the response or of earlier blocks. */
  readonly held: string[] = [];
  private readonly ended: boolean[] = [];
  /** The block whose text is being judged, and the one whose text is being released. */
  private judged = 0;
  private shown = 0;
  /** Undefined if guards need the complete text. */
  private readonly stages: SpanStage[] | undefined;

  constructor(
    make: MakeStages | undefined,
    private readonly released: (block: number, text: string) => void,
  ) {
    this.stages = make?.(
      (text) => this.release(this.shown, text),
      () => this.shown++,
    );
  }

  get isHeld(): boolean {
    return this.stages === undefined;
  }

  /** Adds a piece of the block with this index. */
  push(block: number, text: string): void {
    const last = this.blocks.length - 1;
    const i = this.blocks[last] === block ? last : this.placeOf(block);
    if (this.stages === undefined) this.held[i] += text;
    // No guard judges it, so the order doesn't matter.
    else if (this.stages.length === 0) this.release(i, text);
    else if (i === this.judged) this.stages[0]!.push(text);
    else this.held[i] += text;
  }

  /** A block is complete. Its end is still held back: a match may continue in the next block. */
  close(block: number): void {
    const i = this.blocks.indexOf(block);
    if (i < 0) return;
    this.ended[i] = true;
    this.judgeNextBlock();
  }

  /** Releases what is final by now. */
  releaseFinal(): void {
    for (const stage of this.stages ?? []) stage.releaseFinal();
  }

  end(): void {
    this.ended.fill(true);
    this.judgeNextBlock();
    for (const stage of this.stages ?? []) stage.end();
  }

  release(i: number, text: string): void {
    this.safe[i] += text;
    if (text !== '') this.released(this.blocks[i]!, text);
  }

  private placeOf(block: number): number {
    const found = this.blocks.indexOf(block);
    if (found >= 0) return found;
    this.safe.push('');
    this.held.push('');
    this.ended.push(false);
    const i = this.blocks.push(block) - 1;
    this.judgeNextBlock();
    return i;
  }

  /** The next block is judged once the one before it is complete, because guards see the text before it as context. */
  private judgeNextBlock(): void {
    const first = this.stages?.[0];
    if (first === undefined) return;
    while (this.ended[this.judged] && this.judged + 1 < this.blocks.length) {
      const i = ++this.judged;
      first.next();
      const text = this.held[i]!;
      this.held[i] = '';
      first.push(text);
    }
  }
}
