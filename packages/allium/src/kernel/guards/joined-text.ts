/** All text of one kind in a response that streams. Readers join its blocks, so guards judge them as one text. */
import type { SpanStage } from './redact-stream.js';

/** Makes the stages of the guards, in order: each hands on to the one after it, the last one to what is given here. */
export type MakeStages = (out: (text: string) => void, outNext: () => void) => SpanStage[];

export class JoinedText {
  /** Its blocks, by their place in the content. */
  readonly blocks: number[] = [];
  /** By block: what has been released. */
  readonly safe: string[] = [];
  /** By block: what waits, for the end of the response or of the blocks before it. */
  readonly held: string[] = [];
  private readonly ended: boolean[] = [];
  /** The block whose text is being judged, and the one whose text is being released. */
  private judged = 0;
  private shown = 0;
  /** Undefined when all of it has to be complete first. */
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

  /** A piece of the block at this place in the content. */
  push(block: number, text: string): void {
    const last = this.blocks.length - 1;
    const i = this.blocks[last] === block ? last : this.placeOf(block);
    if (this.stages === undefined) this.held[i] += text;
    // Nobody judges it, so nothing has to be in order.
    else if (this.stages.length === 0) this.release(i, text);
    else if (i === this.judged) this.stages[0]!.push(text);
    else this.held[i] += text;
  }

  /** No more text of a block comes. Its end is held back all the same: the next block may go on with it. */
  close(block: number): void {
    const i = this.blocks.indexOf(block);
    if (i < 0) return;
    this.ended[i] = true;
    this.goOn();
  }

  /** Lets go of what is final by now. */
  settle(): void {
    for (const stage of this.stages ?? []) stage.settle();
  }

  /** The response is complete. */
  end(): void {
    this.ended.fill(true);
    this.goOn();
    for (const stage of this.stages ?? []) stage.end();
  }

  /** What is left of a block that was held to the end. */
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
    this.goOn();
    return i;
  }

  /** The next block is judged when the one before it is complete: only then is known what stands before its text. */
  private goOn(): void {
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
