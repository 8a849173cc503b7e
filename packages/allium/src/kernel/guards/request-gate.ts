/** Judges the messages and system prompt sent to the model, each once per run, so that a turn only pays for what is new. */

import type { ModelContext } from '../context/context.js';
import { isWithheld } from '../journal/session-state.js';
import { isFrozenMessage, type Message } from '../messages/messages.js';
import { judgeMessage } from './content-guards.js';
import { judgeTexts, latching } from './guards.js';
import { judgedOnce } from './judged-once.js';
import { stopFor } from './refusal.js';

export class RequestGate {
  private readonly judged = new WeakMap<Message, Promise<Message>>();
  /** The first messages of the history, as they may be sent. */
  private readonly kept: Message[] = [];
  private changed = false;
  /** The last system prompt. */
  private readonly prompts = new Map<string, Promise<string>>();
  /** Some thinking was changed and must not be sent back. */
  withheld = false;

  /** The first messages of the history; undefined if all of them may be sent unchanged. */
  async history(messages: readonly Message[], ctx: ModelContext): Promise<readonly Message[] | undefined> {
    const start = this.kept.length;
    if (start < messages.length) {
      const judged = await this.all(messages.slice(start), ctx);
      // Another attempt may have been faster.
      for (let i = this.kept.length; i < messages.length; i++) {
        const made = judged[i - start]!;
        this.kept.push(made);
        if (made !== messages[i]) this.changed = true;
      }
    }
    return this.changed ? Object.freeze(this.kept.slice(0, messages.length)) : undefined;
  }

  async all(messages: readonly Message[], ctx: ModelContext): Promise<readonly Message[]> {
    const settled = await Promise.allSettled(messages.map((message) => this.one(message, ctx)));
    return settled.map((one) => {
      if (one.status === 'rejected') throw one.reason;
      return one.value;
    });
  }

  /** The system prompt. It rarely changes between turns, so the last one is remembered. */
  async prompt(given: string, ctx: ModelContext): Promise<string> {
    if (given === '') return given;
    if (!this.prompts.has(given)) this.prompts.clear();
    return judgedOnce(this.prompts, given, ctx, () => this.judgePrompt(given, ctx));
  }

  private async judgePrompt(given: string, ctx: ModelContext): Promise<string> {
    const { request } = ctx.plan.guards;
    const { texts, deny } = await latching(ctx, () =>
      judgeTexts(request, { point: 'request' }, [[given]], ctx),
    );
    if (deny) throw stopFor(deny, ctx);
    return texts[0]![0]!;
  }

  private one(message: Message, ctx: ModelContext): Promise<Message> {
    // A hook may still change it, so it is judged each time it is sent.
    if (!isFrozenMessage(message)) return this.judgeOne(message, ctx);
    return judgedOnce(this.judged, message, ctx, () => this.judgeOne(message, ctx));
  }

  private async judgeOne(message: Message, ctx: ModelContext): Promise<Message> {
    const { owner, deny } = await latching(ctx, () => judgeMessage('request', message, ctx));
    if (deny) throw stopFor(deny, ctx);
    if (owner !== message && owner.role === 'assistant') this.withheld ||= owner.content.some(isWithheld);
    return owner;
  }
}
