/** The assistant message as the consumer sees it grow. The final message is always what was shown. */

import type { ModelContext } from '../context/context.js';
import {
  asJudged,
  type BlockText,
  type JudgedContent,
  Objection,
  ResponseGate,
} from '../guards/response-gate.js';
import type { AssistantContent, ModelResponse, TextContent, ToolCall } from '../messages/messages.js';
import type { ModelPart } from '../messages/model.js';
import type { AgentEvent, MessageDelta } from '../protocol/events.js';
import type { Awaitable } from '../protocol/store.js';
import type { ResponseAssembler } from '../stream/assemble.js';
import type { LiveRun } from './live-run.js';

type Content = readonly AssistantContent[];

/**
 * Every turn has one, even if nobody watches. Then it shows nothing, but still knows what would be on the screen, so
 * that guards say the same and an abort leaves the same message behind.
 */
export class LiveMessage {
  readonly watched: boolean;
  private started = false;
  /** Something is on the consumer's screen. */
  private dirty = false;
  /** Nothing was shown since the last reset. */
  private void = false;
  /** Something that is not text was shown. */
  private mixed = false;
  private stream: LiveStream | undefined = undefined;
  /** Used instead of the stream if nobody watches and no guard judges: where it comes from, and its content. */
  private source: ResponseAssembler | undefined = undefined;
  private claimed: Content | undefined = undefined;
  /** A response that is shown whole. */
  private whole: Content | undefined = undefined;
  private active = 0;
  private overlapping = false;
  /** Events that wait until the input is allowed. */
  private held: AgentEvent[] | undefined = undefined;

  constructor(
    readonly run: LiveRun,
    readonly messageId: string,
  ) {
    this.watched = run.watched;
  }

  /** Holds events back. Returns what emits them; if nobody calls it, they are never emitted. */
  hold(): () => void {
    this.held = [];
    return () => {
      const { held = [] } = this;
      this.held = undefined;
      for (const event of held) this.emit(event);
    };
  }

  get isHeld(): boolean {
    return this.held !== undefined;
  }

  private emit(event: AgentEvent): void {
    if (this.held) this.held.push(event);
    else if (event.type === 'message_update') this.run.events.emitDelta(event);
    else this.run.emit(event);
  }

  /** An attempt begins; `source` grows with it. It streams live unless another one is under way. */
  begin(ctx: ModelContext, source: ResponseAssembler): LiveStream | undefined {
    if (++this.active > 1) this.overlapping = true;
    this.reset();
    if (this.overlapping) return undefined;
    if (this.watched) this.run.events.shows(ctx);
    if (this.watched || this.run.plan.guardsResponses) this.stream = new LiveStream(this, ctx, source);
    else this.source = source;
    return this.stream;
  }

  /** An attempt ended with a response of this content. */
  claim(stream: LiveStream | undefined, content: Content): void {
    if (stream) stream.claim(content);
    else if (this.source) this.claimed = content;
  }

  /** An attempt failed, so what it showed is void. */
  abandon(stream: LiveStream | undefined, source: ResponseAssembler): void {
    if (stream ? this.isLive(stream) : this.source === source) this.reset();
  }

  /** An attempt ended, with or without a response. */
  ended(): void {
    if (--this.active === 0) this.overlapping = false;
  }

  isLive(stream: LiveStream): boolean {
    return this.stream === stream;
  }

  /** The stream of this response, if it is the one that is shown. */
  streaming(response: ModelResponse): LiveStream | undefined {
    return this.stream?.owns(response.content) ? this.stream : undefined;
  }

  show(delta: MessageDelta): void {
    if (!this.dirty || delta.type !== 'text') this.begun(delta);
    const { messageId } = this;
    const { runId, sessionId } = this.run;
    this.emit({ type: 'message_update', runId, sessionId, messageId, delta });
  }

  private begun({ type }: MessageDelta): void {
    if (!this.started) this.start();
    this.dirty = true;
    this.void = false;
    if (type !== 'text') this.mixed = true;
  }

  showText(type: 'text' | 'thinking', block: number, text: string): void {
    if (text !== '') this.show({ type, block, text });
  }

  /** A call, or more of its arguments, under the id it will have in the history. */
  showCall(block: number, call: ToolCall, args: string, content: Content): void {
    if (!this.watched) return;
    const id = this.run.state.callId(call.id, this.messageId, block, content);
    this.show({ type: 'tool-call', block, id, name: call.name, arguments: args });
  }

  /** What was shown is void. */
  reset(): void {
    this.stream = undefined;
    this.source = undefined;
    this.claimed = undefined;
    this.whole = undefined;
    if (this.dirty) this.tellReset();
  }

  start(): void {
    if (this.started || !this.watched) return;
    this.started = true;
    const { messageId } = this;
    const { runId, sessionId } = this.run;
    this.emit({ type: 'message_start', runId, sessionId, messageId, role: 'assistant' });
  }

  /** The layers have agreed on a response: shows what is missing of it, or all of it again. */
  finish(response: ModelResponse, ctx: ModelContext): Awaitable<ModelResponse> {
    const stream = this.streaming(response);
    if (!stream && this.claimed !== response.content) this.reset();
    this.start();
    if (this.watched) this.run.events.shows(ctx);
    if (stream) return stream.end(response, ctx);
    if (!this.run.plan.guardsResponses) return this.showWhole(response);
    return this.run.judgements.response(response, ctx).then((guarded) => this.showWhole(guarded.response));
  }

  private showWhole(response: ModelResponse): ModelResponse {
    this.whole = response.content;
    if (this.watched) this.play(response.content);
    return response;
  }

  /** Shows a response that has passed the guards, in one piece per block. */
  private play(content: Content): void {
    for (const [index, part] of content.entries()) {
      if (part.type === 'text' || part.type === 'thinking') this.showText(part.type, index, part.text);
      else if (part.type === 'tool-call') this.showCall(index, part, part.arguments, content);
    }
  }

  /** Parts were removed, so what was shown is in another place now: shows all of it again. */
  replay(content: Content): void {
    if (!this.watched) return;
    if (this.dirty) this.tellReset();
    this.play(content);
  }

  /**
   * The text that was released before an abort, or would have been if somebody had watched. If more than that was
   * shown, or its place has changed, it is shown again.
   */
  released(): readonly TextContent[] {
    if (this.held) return [];
    const kept = this.texts().filter(({ text }) => text !== '');
    const content = kept.map(({ text }): TextContent => ({ type: 'text', text }));
    if (this.watched && kept.length > 0 && (this.mixed || kept.some(({ block }, i) => block !== i))) {
      this.tellReset();
      this.play(content);
    }
    return content;
  }

  /** The text that got through the guards; nothing if one objects now. */
  private texts(): readonly BlockText[] {
    try {
      if (this.whole) return textsOf(this.whole);
      return this.source ? textsOf(this.source.content as Content) : (this.stream?.released() ?? []);
    } catch {
      return [];
    }
  }

  /** The response was refused or never came. */
  discard(): void {
    this.stream = undefined;
    if (!this.started || this.held) return;
    if (!this.void) this.tellReset();
    const { messageId } = this;
    const { runId, sessionId } = this.run;
    this.run.emit({ type: 'message_end', runId, sessionId, messageId, discarded: true });
  }

  private tellReset(): void {
    this.dirty = false;
    this.void = true;
    this.mixed = false;
    const { messageId } = this;
    const { runId, sessionId } = this.run;
    this.emit({ type: 'message_reset', runId, sessionId, messageId });
  }
}

/** One attempt on its way through the guards to the consumer. */
export class LiveStream {
  /** A guard objected: nothing more is shown. If the layers choose this response, all of it is judged again. */
  objected = false;
  private readonly gate: ResponseGate | undefined = undefined;
  private readonly holdsCalls: boolean;
  /** Contents of responses that are this stream. */
  private mine: Content[] | undefined = undefined;
  private done: Promise<JudgedContent> | undefined = undefined;
  /** The last block that has begun. */
  private last = -1;

  constructor(
    private readonly live: LiveMessage,
    private readonly ctx: ModelContext,
    private readonly source: ResponseAssembler,
  ) {
    const { guards, guardsResponses } = live.run.plan;
    this.holdsCalls = guards['tool-args'].length > 0;
    if (!guardsResponses) return;
    // If no layer can replace the response, there is nothing to wait for.
    const waits = live.run.plan.layers.model.length > 0 || live.isHeld;
    this.gate = new ResponseGate(ctx, waits, (type, block, text) => {
      if (live.watched) live.showText(type, block, text);
    });
  }

  part(part: ModelPart, block: number): void {
    if (this.objected || !this.live.isLive(this)) return;
    if (this.gate === undefined && part.type === 'text') this.live.showText('text', block, part.text);
    else this.other(part, block);
  }

  private other(part: ModelPart, block: number): void {
    if (this.gate !== undefined) this.guarded(this.gate, part, block);
    else if (part.type === 'thinking') this.live.showText('thinking', block, part.text);
    if (part.type !== 'tool-call' && part.type !== 'tool-call-delta') return;
    if (this.live.watched && !this.holdsCalls && !this.objected) {
      const { content } = this.source;
      this.live.showCall(block, content[block] as ToolCall, part.arguments, content as Content);
    }
  }

  private guarded(gate: ResponseGate, part: ModelPart, block: number): void {
    const { last } = this;
    if (block > last) this.last = block;
    try {
      // Text without a key goes into the last block, so that block is complete when another begins.
      if (last >= 0 && block > last && !this.source.isKeyed(last)) gate.close(last);
      if (part.type !== 'text' && part.type !== 'thinking') return;
      gate.push(part.type, block, part.text);
      if (part.end) gate.close(block);
    } catch (error) {
      if (!(error instanceof Objection)) throw error;
      this.objected = true;
    }
  }

  /** Responses with this content are this stream. */
  claim(content: Content): void {
    if (this.mine === undefined) this.mine = [content];
    else this.mine.push(content);
  }

  /** Is a response with this content what was shown? */
  owns(content: Content): boolean {
    return !this.objected && (this.mine?.includes(content) ?? false);
  }

  /** Flushes the guards, once. */
  end(response: ModelResponse, ctx: ModelContext): Awaitable<ModelResponse> {
    if (!this.gate) return response;
    this.done ??= this.flush(this.gate, response, ctx);
    return this.done.then((judged) => asJudged(response, judged, ctx));
  }

  released(): readonly BlockText[] {
    if (this.objected) return [];
    return this.gate ? this.gate.settled() : textsOf(this.source.content as Content);
  }

  private async flush(
    gate: ResponseGate,
    response: ModelResponse,
    ctx: ModelContext,
  ): Promise<JudgedContent> {
    const guarded = await gate.end(response, ctx);
    this.live.run.judgements.remember(guarded, this.ctx._call);
    this.claim(guarded.content);
    if (!this.live.isLive(this)) return guarded;
    if (guarded.content.length !== response.content.length) this.live.replay(guarded.content);
    else if (this.holdsCalls) {
      for (const [index, part] of guarded.content.entries()) {
        if (part.type === 'tool-call') this.live.showCall(index, part, part.arguments, guarded.content);
      }
    }
    return guarded;
  }
}

function textsOf(content: Content): BlockText[] {
  return content.flatMap((part, block) => (part.type === 'text' ? { block, text: part.text } : []));
}
