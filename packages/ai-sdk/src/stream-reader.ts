/** Reads an AI SDK stream part by part, no faster than it is asked. */
import type { ModelPart } from 'allium';
import type { AiSdkReader, AiSdkStream } from './language-model.js';
import { type MapperOptions, PartMapper } from './part-mapper.js';

type Step = IteratorResult<ModelPart>;

/**
 * An async iterator by hand: `return()` of an async generator would wait for a read that may never end. It can be
 * read once. An abort rejects what is awaited at once and lets go of the stream, even if the model ignores it.
 */
export class StreamReader implements AsyncIterableIterator<ModelPart> {
  private readonly mapper: PartMapper;
  private readonly ready: ModelPart[] = [];
  private next_ = 0;
  private reader: AiSdkReader | undefined;
  private opening: Promise<void> | undefined;
  private ended = false;
  private failure: { readonly error: unknown } | undefined;
  private waiting: { resolve(step: Step): void; reject(error: unknown): void } | undefined;
  private readonly onAbort = (): void => this.abort();
  private readonly onRead = ({ done, value }: { done: boolean; value?: unknown }): void =>
    this.took(done, value);
  private readonly onError = (error: unknown): void => this.fail(error);

  constructor(
    private readonly open: () => PromiseLike<{ readonly stream: AiSdkStream }>,
    private readonly signal: AbortSignal,
    options: MapperOptions,
  ) {
    this.mapper = new PartMapper(options, (part) => void this.ready.push(part));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Step> {
    if (this.next_ < this.ready.length) return Promise.resolve(this.step());
    if (this.failure) {
      const { error } = this.failure;
      this.failure = undefined;
      return Promise.reject(error);
    }
    if (this.ended) return Promise.resolve(DONE);
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      if (this.reader) this.pull();
      else this.opening ??= this.start();
    });
  }

  /** Nobody wants the rest: closes the connection. */
  return(): Promise<Step> {
    this.release();
    this.ready.length = this.next_ = 0;
    this.failure = undefined;
    this.waiting?.resolve(DONE);
    this.waiting = undefined;
    return Promise.resolve(DONE);
  }

  private async start(): Promise<void> {
    try {
      this.signal.throwIfAborted();
      this.signal.addEventListener('abort', this.onAbort, { once: true });
      const { stream } = await this.open();
      this.reader = stream.getReader();
      if (this.ended) this.cancel();
      else this.pull();
    } catch (error) {
      this.fail(error);
    }
  }

  private pull(): void {
    this.reader!.read().then(this.onRead, this.onError);
  }

  private took(done: boolean, value: unknown): void {
    if (this.ended) return;
    if (done) this.end();
    else {
      try {
        this.mapper.take(value);
      } catch (error) {
        this.cancel();
        this.fail(error);
        return;
      }
      if (this.mapper.finished) {
        this.end();
        this.drain();
      } else if (this.ready.length === 0) {
        this.pull();
        return;
      }
    }
    const { waiting } = this;
    this.waiting = undefined;
    waiting?.resolve(this.next_ < this.ready.length ? this.step() : DONE);
  }

  private step(): Step {
    const value = this.ready[this.next_++]!;
    if (this.next_ === this.ready.length) this.ready.length = this.next_ = 0;
    return { done: false, value };
  }

  /** Parts that were read before go out first. */
  private fail(error: unknown): void {
    if (this.ended) return;
    this.end();
    const { waiting } = this;
    this.waiting = undefined;
    if (!waiting || this.ready.length > 0) this.failure = { error };
    if (this.ready.length > 0) waiting?.resolve(this.step());
    else waiting?.reject(error);
  }

  private abort(): void {
    this.ready.length = this.next_ = 0;
    this.cancel();
    this.fail(this.signal.reason);
  }

  private end(): void {
    this.ended = true;
    this.signal.removeEventListener('abort', this.onAbort);
  }

  private release(): void {
    if (this.ended) return;
    this.end();
    this.cancel();
  }

  /** Nobody cares how a stream reacts to being cancelled. */
  private cancel(): void {
    this.reader?.cancel(this.signal.reason).catch(ignore);
  }

  /** The answer is complete; reading on to the end lets the connection be used again. */
  private drain(): void {
    const { reader } = this;
    const on = ({ done }: { done: boolean }): unknown => (done ? undefined : reader!.read().then(on, ignore));
    reader!.read().then(on, ignore);
  }
}

const DONE: Step = Object.freeze({ done: true, value: undefined });

function ignore(): void {}
