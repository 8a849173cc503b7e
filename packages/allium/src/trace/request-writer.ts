/** Stores what changed in requests, and what was sent, as differences from what the reader has. */

import {
  type Message,
  type ModelContext,
  type ModelRequest,
  modelName,
  type SentRequest,
  type ToolSpec,
  type TraceChanges,
  type TracedText,
} from '../index.js';
import { callFacts, callKey, callParts, type RecordedRun, type RequestParts } from '../kit/index.js';
import { MessageLists } from './message-lists.js';
import { type Telling, WITHHELD } from './telling.js';
import { inserted, isEqual, jsonOf, splice } from './value-changes.js';

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** How many prompts to remember as bases for later ones. */
const MOST_PROMPTS = 64;

export class RequestWriter {
  private readonly lists: MessageLists;
  /** The record that stored a system prompt. */
  private readonly prompts = new Map<string, number>([['', 0]]);
  /** The system prompt that each step made the last time. */
  private readonly lastPrompts = new Map<string, string>();
  private readonly repeated = new Map<string, TracedText>();
  /** The last step that changed the messages of a model call. */
  private readonly steps = new WeakMap<object, number>();
  /** The last request of each caller. */
  private readonly before = new Map<string, Omit<ModelRequest, 'messages'> & { readonly model: string }>();
  private readonly specs = new Map<string, ToolSpec>();

  /** `keys`: how many were used before a resume. */
  constructor(
    private readonly run: RecordedRun,
    private readonly telling: Telling,
    keys: number,
  ) {
    this.lists = new MessageLists(() => run.history.view(), keys);
  }

  /** What record `n` changed in a request; undefined if nothing. */
  changes(
    n: number,
    step: string,
    ctx: ModelContext,
    before: RequestParts,
    after: RequestParts,
  ): TraceChanges | undefined {
    const made: Writable<TraceChanges> = {};
    if (before.messages !== after.messages && !this.isHistory(ctx, before, after))
      made.messages = this.messages(n, step, ctx, before.messages, after.messages ?? ctx.messages);
    if (before.systemPrompt !== after.systemPrompt)
      made.systemPrompt = this.prompt(n, step, before.systemPrompt, after.systemPrompt);
    if (before.tools !== after.tools) {
      const [from, to] = [before.tools, after.tools].map((tools) => tools.map(({ name }) => name));
      const added = to!.filter((name) => !from!.includes(name));
      const removed = from!.filter((name) => !to!.includes(name));
      made.tools = { added, removed };
    }
    if (before.model !== after.model) {
      // A stand-in for a model has the same name.
      const [from, to] = [modelName(before.model), modelName(after.model)];
      if (from !== to) made.model = { from, to };
    }
    if (before.settings !== after.settings)
      made.settings = this.telling.changes(before.settings, after.settings);
    return Object.keys(made).length > 0 ? made : undefined;
  }

  /** Somebody assigned the history, unchanged. */
  private isHistory(ctx: ModelContext, before: RequestParts, after: RequestParts): boolean {
    if (before.messages !== undefined) return false;
    return after.messages === this.run.history.first(callFacts(ctx).historyLength);
  }

  messages(
    n: number,
    step: string,
    ctx: ModelContext,
    before: readonly Message[] | undefined,
    after: readonly Message[],
  ): TraceChanges['messages'] {
    const call = callKey(ctx);
    const given = this.lists.makerOf(before) ?? this.steps.get(call) ?? 0;
    this.steps.set(call, n);
    const tell = (message: Message): Message => this.telling.message(message);
    return this.lists.write(step, n, after, given, tell, this.coming, given === 0 ? before : undefined);
  }

  prompt(
    n: number,
    step: string,
    before: string,
    after: string,
    tell = (text: string) => this.telling.text(text),
  ): TracedText {
    const given = this.prompts.get(before) ?? 0;
    const last = this.lastPrompts.get(step);
    // Looking up the same string again is faster than looking up an equal one.
    const again = last === after ? this.prompts.get(last) : undefined;
    // Most steps turn the same prompt into the same text every turn.
    if (again !== undefined) return this.sameAgain(step, again, given, after.length);
    const made = [before, last ?? '', '']
      .flatMap((text) => {
        const of = this.prompts.get(text);
        return of === undefined ? [] : [textAgainst(of, given, text, after)];
      })
      .reduce((best, one) => (one.text.length < best.text.length ? one : best));
    const text = made.text === '' ? '' : tell(made.text);
    // A text from which something is missing is no base for others.
    if (text === WITHHELD) return { ...made, text };
    // Two steps may each write half of what guards remove.
    const whole = tell(after);
    if (whole !== after) return { of: 0, given, start: 0, end: 0, text: whole };
    this.remember(after, n);
    this.lastPrompts.set(step, after);
    return made;
  }

  /** One object for all turns: a long run would keep thousands. */
  private sameAgain(step: string, of: number, given: number, at: number): TracedText {
    const known = this.repeated.get(step);
    if (known?.of === of && known.given === given) return known;
    const made = { of, given, start: at, end: at, text: '' };
    this.repeated.set(step, made);
    return made;
  }

  private remember(prompt: string, n: number): void {
    if (this.prompts.has(prompt)) return;
    this.prompts.set(prompt, n);
    if (this.prompts.size <= MOST_PROMPTS) return;
    // The first two are the empty one and the agent's own.
    const [, , oldest] = this.prompts.keys();
    this.prompts.delete(oldest!);
  }

  /** The agent's own system prompt, unless it is stored already. */
  own(n: number, prompt: string): TracedText | undefined {
    if (this.prompts.has(prompt)) return undefined;
    return this.prompt(n, 'agent', '', prompt, (text) => this.telling.ownPrompt(text));
  }

  /** What record `n` sent. It has passed the guards. */
  sent(n: number, ctx: ModelContext, request: ModelRequest, plain: boolean, caller = ''): SentRequest {
    const { messages, systemPrompt, tools, settings } = request;
    const model = modelName(ctx.model);
    const before = this.before.get(caller);
    const { coming } = this;
    const made: Writable<SentRequest> = {
      history: callFacts(ctx).historyLength + (ctx.caller ? 0 : coming.length),
    };
    if (!plain) {
      const given =
        this.lists.makerOf(messages) ??
        this.lists.makerOf(callParts(ctx).messages) ??
        this.steps.get(callKey(ctx));
      const from = given === undefined ? callParts(ctx).messages : undefined;
      made.messages = this.lists.write(`model ${caller}`, n, messages, given ?? 0, undefined, coming, from);
    }
    const isOther =
      !before ||
      before.systemPrompt !== systemPrompt ||
      before.tools !== tools ||
      before.model !== model ||
      !isEqual(before.settings, settings);
    if (!isOther) return made;
    if (before?.systemPrompt !== systemPrompt) made.systemPrompt = this.sentPrompt(n, ctx, systemPrompt);
    if (before?.tools !== tools) made.tools = this.sentTools(tools);
    if (before?.model !== model) made.model = model;
    if (!isEqual(before?.settings, settings)) made.settings = jsonOf(settings) as typeof settings;
    this.before.set(caller, { systemPrompt, tools, settings, model });
    return made;
  }

  private sentPrompt(n: number, ctx: ModelContext, prompt: string): TracedText {
    const of = this.prompts.get(prompt);
    if (of !== undefined) return { of, given: of, start: prompt.length, end: prompt.length, text: '' };
    const given = this.prompts.get(ctx.systemPrompt) ?? 0;
    const base = given === 0 ? '' : ctx.systemPrompt;
    this.remember(prompt, n);
    return textAgainst(given, given, base, prompt);
  }

  private sentTools(tools: readonly ToolSpec[]): NonNullable<SentRequest['tools']> {
    const specs = tools.filter((spec) => this.specs.get(spec.name) !== spec);
    for (const spec of specs) this.specs.set(spec.name, spec);
    const names = tools.map(({ name }) => name);
    return specs.length > 0 ? { names, specs } : { names };
  }

  /** Input that guards still judge: if they allow it, it follows the history. */
  private get coming(): readonly Message[] {
    return this.run.pendingInput?.messages ?? [];
  }
}

function textAgainst(of: number, given: number, base: string, text: string): TracedText {
  const cut = splice(base, text);
  return { of, given, ...cut, text: inserted(base, text, cut) };
}
