/** The assistant message as the consumer sees it grow. The final message is what was shown, in every case. */
import { Assembler, partsOf } from './assemble.js';
import type { ModelContext } from './context.js';
import { guardsResponses, ResponseGate } from './guards.js';
import type { AssistantContent, ModelResponse, ToolCall } from './messages.js';
import type { ModelPart, StreamTransform } from './model.js';
import type { Run } from './run.js';

type Content = readonly AssistantContent[];

export class LiveMessage {
  private started = false;
  private stream: LiveStream | undefined;
  private active = 0;
  private overlapping = false;
  /** What is on the consumer's screen, by block. */
  private blocks: ({ type: 'text' | 'thinking' | 'tool-call'; text: string } | undefined)[] = [];

  constructor(
    readonly run: Run,
    readonly messageId: string,
  ) {}

  /** An attempt begins. It streams live unless another one is under way. */
  begin(ctx: ModelContext): LiveStream | undefined {
    if (++this.active > 1) this.overlapping = true;
    this.reset();
    this.stream = this.overlapping ? undefined : new LiveStream(this, ctx);
    return this.stream;
  }

  /** An attempt ended, one way or the other. */
  ended(): void {
    if (--this.active === 0) this.overlapping = false;
  }

  isLive(stream: LiveStream): boolean {
    return this.stream === stream;
  }

  /** The stream this response came by, while it is the one that is shown. */
  streaming(response: ModelResponse): LiveStream | undefined {
    return this.stream?.owns(response.content) ? this.stream : undefined;
  }

  show(type: 'text' | 'thinking', block: number, text: string): void {
    if (text === '') return;
    this.start();
    const shown = (this.blocks[block] ??= { type, text: '' });
    shown.text += text;
    this.run.emit({ type: 'message_update', runId: this.run.runId, sessionId: this.run.sessionId, messageId: this.messageId, delta: { type, block, text } });
  }

  showCall(block: number, call: ToolCall, args: string): void {
    this.start();
    this.blocks[block] ??= { type: 'tool-call', text: '' };
    const delta = { type: 'tool-call' as const, block, id: call.id, name: call.name, arguments: args };
    this.run.emit({ type: 'message_update', runId: this.run.runId, sessionId: this.run.sessionId, messageId: this.messageId, delta });
  }

  /** What was shown is void. */
  reset(): void {
    if (this.blocks.length === 0) return;
    this.blocks = [];
    this.run.emit({ type: 'message_reset', runId: this.run.runId, sessionId: this.run.sessionId, messageId: this.messageId });
  }

  start(): void {
    if (this.started) return;
    this.started = true;
    this.run.emit({ type: 'message_start', runId: this.run.runId, sessionId: this.run.sessionId, messageId: this.messageId, role: 'assistant' });
  }

  /** The layers have agreed on a response: what is missing of it is shown, or all of it anew. */
  async finish(response: ModelResponse, ctx: ModelContext): Promise<ModelResponse> {
    const stream = this.streaming(response);
    if (stream) return stream.end(response);
    this.stream = undefined;
    this.reset();
    const { response: guarded } = await this.run.guardOnce(response, ctx);
    this.play(guarded);
    return guarded;
  }

  /** Shows a response that has passed the guards, in one piece per block. */
  play(response: ModelResponse): void {
    this.start();
    for (const [index, part] of response.content.entries()) {
      if (part.type === 'text' || part.type === 'thinking') this.show(part.type, index, part.text);
      else if (part.type === 'tool-call') this.showCall(index, part, part.arguments);
    }
  }

  /** The text that was released before an abort. */
  released(): AssistantContent[] {
    return this.blocks.flatMap((block) => (block?.type === 'text' ? [{ type: 'text' as const, text: block.text }] : []));
  }

  /** The response was refused or never came. */
  discard(): void {
    this.reset();
    if (!this.started) return;
    this.run.emit({ type: 'message_end', runId: this.run.runId, sessionId: this.run.sessionId, messageId: this.messageId, discarded: true });
  }
}

/** One attempt on its way to the consumer, through the guards. */
export class LiveStream {
  private readonly gate: ResponseGate | undefined;
  private readonly holdsCalls: boolean;
  private readonly mine = new Set<Content>();
  private done: Promise<ModelResponse> | undefined;

  constructor(
    private readonly live: LiveMessage,
    private readonly ctx: ModelContext,
  ) {
    const { guards } = live.run.plan;
    this.holdsCalls = guards['tool-args'].length > 0;
    if (guardsResponses(guards)) this.gate = new ResponseGate(guards, ctx, (type, block, text) => live.show(type, block, text));
  }

  part(part: ModelPart, block: number, assembled: Content): void {
    if (!this.live.isLive(this)) return;
    if (part.type === 'text' || part.type === 'thinking') {
      if (this.gate) this.gate.push(part.type, block, part.text);
      else this.live.show(part.type, block, part.text);
    } else if ((part.type === 'tool-call' || part.type === 'tool-call-delta') && !this.holdsCalls) {
      const call = assembled[block] as ToolCall;
      this.live.showCall(block, { ...call, id: this.live.run.callId(call.id, this.live.messageId, block, assembled) }, part.arguments);
    }
  }

  /** Responses with this content are this stream. */
  claim(content: Content): void {
    this.mine.add(content);
  }

  owns(content: Content): boolean {
    return this.live.isLive(this) && this.mine.has(content);
  }

  /** Flushes the guards, once. */
  async end(response: ModelResponse): Promise<ModelResponse> {
    this.done ??= this.flush(response);
    const { content } = await this.done;
    return content === response.content ? response : { ...response, content };
  }

  private async flush(response: ModelResponse): Promise<ModelResponse> {
    this.live.start();
    if (!this.gate) return response;
    const guarded = await this.gate.end(response);
    this.live.run.remember(guarded.content, this.gate.calls);
    this.claim(guarded.content);
    if (this.holdsCalls) {
      for (const [index, part] of guarded.content.entries()) if (part.type === 'tool-call') this.live.showCall(index, part, part.arguments);
    }
    return guarded;
  }
}

/** Applies transforms to a response that did not stream through them: one that was cached, preset or replaced. */
export function transformed(response: ModelResponse, factories: readonly (() => StreamTransform)[]): ModelResponse {
  const assembler = new Assembler(response.model ?? 'response');
  const first = chain(factories, (part) => void assembler.add(part));
  for (const part of partsOf(response)) first(part);
  const { content } = assembler.response();
  return { ...response, content };
}

/** Plain functions from the first transform to `out`. `finish` makes each transform end before it goes on. */
export function chain(factories: readonly (() => StreamTransform)[], out: (part: ModelPart) => void): (part: ModelPart) => void {
  return factories.reduceRight<(part: ModelPart) => void>((next, factory) => {
    const transform = factory();
    return (part) => {
      if (part.type !== 'finish') return transform.part(part, next);
      transform.end?.(next);
      next(part);
    };
  }, out);
}

