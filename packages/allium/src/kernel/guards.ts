/** The guard ring: text and calls are judged at fixed points, wherever the guards stand in the list. */
import type { Context } from './context.js';
import { AlliumError, attribute, isControl, messageOf, StopRun, shown } from './errors.js';
import type { AssistantContent, Message, ModelResponse, TextContent, ThinkingContent, ToolCall, ToolContent } from './messages.js';
import type { Guard, GuardPoint, GuardSubject, Span, Verdict } from './middleware.js';
import { normalise, SpanStage } from './span-stage.js';
import type { Request } from './store.js';
import type { ToolResult } from './tool.js';

export interface PlannedGuard {
  readonly name: string;
  readonly position: number;
  readonly guard: Guard;
  readonly open: boolean;
}

export type GuardTable = Readonly<Record<GuardPoint, readonly PlannedGuard[]>>;

/** What the guards of a point made of some texts. */
export interface Judged {
  readonly texts: readonly string[];
  readonly changed: boolean;
  readonly args?: unknown;
  readonly deny?: { readonly reason: string; readonly by: string };
  readonly ask?: { readonly request: Request; readonly by: string };
}

/** A guard refused a call because of its arguments, or wants a human to agree. By place in the content. */
export type CallVerdicts = Map<number, Pick<Judged, 'deny' | 'ask'>>;

/** Judges complete texts: each guard in list order sees what the one before it let through. Deny beats ask beats rewrite. */
export async function judge(guards: readonly PlannedGuard[], subject: Omit<GuardSubject, 'text'>, given: readonly string[], ctx: Context): Promise<Judged> {
  let texts = given;
  let args = subject.args;
  let ask: Judged['ask'];
  for (const planned of guards) {
    const { guard, name } = planned;
    try {
      if (guard.find) {
        const seen = texts.map((text) => redact(planned, subject.point, text, ctx));
        const denied = seen.find((one) => one.deny)?.deny;
        if (denied) return { texts, changed: false, deny: denied };
        const before = texts;
        texts = seen.map((one) => one.text);
        if (args !== undefined && texts.some((text, i) => text !== before[i])) args = withStrings(args, texts);
      }
      if (!guard.judge) continue;
      const position = ctx._position;
      ctx._position = planned.position;
      const verdict = await guard.judge({ ...subject, args, text: texts.join('\n') }, { point: subject.point, from: 0, context: ctx });
      ctx._position = position;
      ctx._call.check();
      if (verdict === undefined) continue;
      checkVerdict(name, verdict);
      if (verdict.type === 'deny') {
        if (guard.action === 'stop') throw stopFor(planned, ctx, verdict.reason);
        return { texts, changed: false, deny: { reason: verdict.reason ?? `Refused by guard "${name}".`, by: name } };
      }
      if (verdict.type === 'ask') ask ??= { request: verdict.request, by: name };
      if (verdict.type === 'rewrite') {
        if (verdict.args !== undefined && subject.point === 'tool-args') {
          args = verdict.args;
          texts = stringsIn(args);
        } else if (verdict.text !== undefined) texts = texts.map((_, i) => (i === 0 ? verdict.text! : ''));
        ctx._run.note(name, `rewrote ${subject.point}`);
      }
    } catch (error) {
      if (!failed(planned, error, ctx)) throw error;
    }
  }
  const changed = texts.length !== given.length || texts.some((text, i) => text !== given[i]) || args !== subject.args;
  return { texts, changed, ...(args !== subject.args && { args }), ...(ask && { ask }) };
}

/** A text without what one guard found in it. */
function redact(planned: PlannedGuard, point: GuardPoint, text: string, ctx: Context): { text: string; deny?: Judged['deny'] } {
  let out = '';
  let position = 0;
  for (const span of spansOf(planned, point, text, 0, ctx)) {
    const deny = acted(planned, point, ctx);
    if (deny) return { text, deny };
    if (planned.guard.action === 'warn') return { text };
    out += text.slice(position, span.start) + replacementOf(planned.guard, span);
    position = span.end;
  }
  return { text: position === 0 ? text : out + text.slice(position) };
}

/** What finding something means, apart from cutting it: a refusal is returned, a stop is thrown. */
function acted(planned: PlannedGuard, point: GuardPoint, ctx: Context): Judged['deny'] {
  const { action = 'redact' } = planned.guard;
  if (action === 'stop') throw stopFor(planned, ctx);
  if (action === 'block') return { reason: `Refused by guard "${planned.name}".`, by: planned.name };
  ctx._run.note(planned.name, action === 'warn' ? `warned about ${point}` : `redacted ${point}`);
  if (action === 'warn') ctx._run.emitCustom('guard_warning', { point }, planned.name);
  return undefined;
}

function spansOf(planned: PlannedGuard, point: GuardPoint, text: string, from: number, ctx: Context): readonly Span[] {
  return normalise(planned.guard.find!(text, { point, from, context: ctx }), text, planned.name);
}

function replacementOf(guard: Guard, span: Span): string {
  return span.replacement ?? guard.replacement ?? '[redacted]';
}

function stopFor(planned: PlannedGuard, ctx: Context, reason?: string): StopRun {
  const signal = new StopRun('guardrail', reason ?? `Stopped by guard "${planned.name}".`);
  ctx._call.latch(signal, planned.name);
  return signal;
}

/** True when the guard fails open and is skipped; otherwise the error becomes GUARD_FAILED. */
function failed(planned: PlannedGuard, error: unknown, ctx: Context): boolean {
  if (isControl(error)) throw error;
  if (planned.open) {
    ctx._run.note(planned.name, `failed and was skipped: ${messageOf(error)}`);
    return true;
  }
  attribute(error, { middleware: planned.name, hook: 'guard' });
  throw new AlliumError('GUARD_FAILED', `Guard "${planned.name}" failed, so nothing more was released: ${messageOf(error)}`, { cause: error });
}

function checkVerdict(name: string, verdict: Verdict): void {
  if (['allow', 'deny', 'ask', 'rewrite'].includes(verdict?.type)) return;
  throw new AlliumError('INVALID_HOOK_RESULT', `judge of guard "${name}" returned ${shown(verdict)}. Return { type: 'allow' | 'deny' | 'ask' | 'rewrite' } or nothing.`);
}

// ── Messages and results ─────────────────────────────────────────────────────────────────────────────────────

/** The texts of a message or result with what the guards of a point left of them. */
export async function judgeContent<T extends { readonly content: readonly { readonly type: string }[] }>(
  guards: readonly PlannedGuard[],
  subject: Omit<GuardSubject, 'text'>,
  owner: T,
  ctx: Context,
): Promise<{ owner: T; deny?: Judged['deny'] }> {
  const parts = owner.content.filter((part): part is TextContent => part.type === 'text');
  const judged = await judge(guards, subject, parts.map((part) => part.text), ctx);
  if (judged.deny || !judged.changed) return { owner, deny: judged.deny };
  let i = 0;
  const content = owner.content.map((part) => (part.type === 'text' ? { ...part, text: judged.texts[i++] ?? '' } : part));
  return { owner: { ...owner, content } };
}

export async function judgeMessage(table: GuardTable, point: 'input' | 'request', message: Message, ctx: Context): Promise<{ owner: Message; deny?: Judged['deny'] }> {
  return judgeContent(table[point], { point, message }, message, ctx);
}

export async function judgeToolResult(table: GuardTable, toolCall: ToolCall, result: ToolResult, ctx: Context): Promise<ToolResult> {
  const { owner, deny } = await judgeContent(table['tool-result'], { point: 'tool-result', toolCall, result }, result, ctx);
  return deny ? { content: [{ type: 'text', text: deny.reason }], isError: true } : owner;
}

/** Progress of a tool, as far as guards that can answer at once allow it; otherwise nothing is shown. */
export function judgeUpdate(table: GuardTable, content: readonly ToolContent[], ctx: Context): readonly ToolContent[] | undefined {
  const guards = table['tool-result'];
  if (guards.some((planned) => planned.guard.judge)) return undefined;
  let out = content;
  for (const planned of guards) {
    try {
      let deny: unknown;
      out = out.map((part) => {
        if (part.type !== 'text') return part;
        const seen = redact(planned, 'tool-result', part.text, ctx);
        deny ??= seen.deny;
        return { ...part, text: seen.text };
      });
      if (deny) return undefined;
    } catch (error) {
      if (!failed(planned, error, ctx)) throw error;
    }
  }
  return out;
}

// ── Responses ────────────────────────────────────────────────────────────────────────────────────────────────

const OUTPUT_POINTS = ['output', 'thinking', 'tool-args', 'final'] as const;

export function guardsResponses(table: GuardTable): boolean {
  return OUTPUT_POINTS.some((point) => table[point].length > 0);
}

/** Can text of this kind go out while it streams, or only when it is complete? */
function streamable(table: GuardTable, type: 'text' | 'thinking'): boolean {
  if (type === 'text' && table.final.length > 0) return false;
  return table[type === 'text' ? 'output' : 'thinking'].every(({ guard }) => guard.find && !guard.judge && typeof guard.hold === 'object');
}

/** What leaves the ring while a response streams. */
export type Released = (type: 'text' | 'thinking', block: number, text: string) => void;

/** Judges one response, piece by piece as it streams or whole. A refusal is thrown as StopRun, a broken guard as GUARD_FAILED. */
export class ResponseGate {
  /** Verdicts about calls, for the tool phase. */
  readonly calls: CallVerdicts = new Map();
  private readonly blocks: ({ type: 'text' | 'thinking'; first?: SpanStage; stages: SpanStage[]; safe: string; raw: string } | undefined)[] = [];

  constructor(
    private readonly table: GuardTable,
    private readonly ctx: Context,
    private readonly released: Released,
  ) {}

  /** A piece of text or thinking of block `index`. */
  push(type: 'text' | 'thinking', index: number, text: string): void {
    const block = this.blocks[index] ?? this.open(type, index);
    block.raw += text;
    block.first?.push(text);
  }

  /** The stream is complete: flushes, judges what had to wait, and returns the response as it may be seen. */
  async end(response: ModelResponse): Promise<ModelResponse> {
    const texts = new Map<number, string>();
    for (const [index, block] of this.blocks.entries()) {
      if (!block) continue;
      for (const stage of block.stages) stage.end();
      if (block.first) texts.set(index, block.safe);
    }
    await this.judgeHeld(response, 'thinking', texts);
    await this.judgeHeld(response, 'text', texts);
    const args = await this.judgeCalls(response);
    if ([...texts].every(([index, text]) => text === (response.content[index] as TextContent).text) && args.size === 0) return response;
    const content = response.content.map((part, index): AssistantContent => {
      if (part.type === 'tool-call') return args.has(index) ? { ...part, arguments: args.get(index)! } : part;
      const text = texts.get(index);
      if (text === undefined || text === (part as TextContent).text) return part;
      if (part.type !== 'thinking') return { ...(part as TextContent), text };
      // The provider's seal is on the old text, so this block can never be sent back.
      const { signature: _, ...rest } = part as ThinkingContent;
      return { ...rest, text, redacted: true };
    });
    return { ...response, content };
  }

  private open(type: 'text' | 'thinking', index: number) {
    const block: NonNullable<(typeof this.blocks)[number]> = { type, stages: [], safe: '', raw: '' };
    this.blocks[index] = block;
    if (!streamable(this.table, type)) return block;
    let out = (text: string): void => {
      block.safe += text;
      this.released(type, index, text);
    };
    const guards = this.table[type === 'text' ? 'output' : 'thinking'];
    for (const planned of guards.toReversed()) {
      const stage = this.stage(planned, type === 'text' ? 'output' : 'thinking', out);
      block.stages.unshift(stage);
      out = (text) => stage.push(text);
    }
    block.first = block.stages[0] ?? ({ push: out } as SpanStage);
    return block;
  }

  private stage(planned: PlannedGuard, point: GuardPoint, out: (text: string) => void): SpanStage {
    const { guard } = planned;
    const hold = (guard.hold as { chars: number }).chars;
    const find = (text: string, from: number): readonly Span[] => {
      try {
        return spansOf(planned, point, text, from, this.ctx);
      } catch (error) {
        failed(planned, error, this.ctx);
        return [];
      }
    };
    return new SpanStage(
      hold,
      (text, from) => {
        const spans = find(text, from);
        return guard.action === 'warn' ? (spans.some((span) => span.start >= from) && acted(planned, point, this.ctx), []) : spans;
      },
      (span) => {
        const deny = acted(planned, point, this.ctx);
        if (deny) throw this.refusal(deny);
        return replacementOf(guard, span);
      },
      out,
    );
  }

  /** Blocks that no window covers: all guards see the complete text. */
  private async judgeHeld(response: ModelResponse, type: 'text' | 'thinking', texts: Map<number, string>): Promise<void> {
    if (streamable(this.table, type)) return;
    const held = [...this.blocks.entries()].filter(([, block]) => block?.type === type) as [number, { raw: string }][];
    const final = type === 'text' && !response.content.some((part) => part.type === 'tool-call');
    let current = held.map(([, block]) => block.raw);
    for (const point of type === 'thinking' ? (['thinking'] as const) : final ? (['output', 'final'] as const) : (['output'] as const)) {
      if (this.table[point].length === 0 || held.length === 0) continue;
      const judged = await judge(this.table[point], { point, message: response }, current, this.ctx);
      if (judged.deny) throw this.refusal(judged.deny);
      current = [...judged.texts];
    }
    held.forEach(([index], i) => {
      texts.set(index, current[i]!);
      if (current[i] !== '') this.released(type, index, current[i]!);
    });
  }

  private async judgeCalls(response: ModelResponse): Promise<Map<number, string>> {
    const rewritten = new Map<number, string>();
    if (this.table['tool-args'].length === 0) return rewritten;
    for (const [index, call] of response.content.entries()) {
      if (call.type !== 'tool-call') continue;
      const { arguments: text, deny, ask } = await judgeArguments(this.table, call, this.ctx);
      if (deny || ask) this.calls.set(index, { deny, ask });
      if (text !== call.arguments) rewritten.set(index, text);
    }
    return rewritten;
  }

  private refusal(deny: NonNullable<Judged['deny']>): StopRun {
    const signal = new StopRun('guardrail', deny.reason);
    this.ctx._call.latch(signal, deny.by);
    return signal;
  }
}

/** Judges the arguments of a call, parsed; text that is not JSON is judged as it stands. */
export async function judgeArguments(table: GuardTable, toolCall: ToolCall, ctx: Context): Promise<{ arguments: string } & Pick<Judged, 'deny' | 'ask'>> {
  let args: unknown;
  try {
    args = JSON.parse(toolCall.arguments || '{}');
  } catch {
    const judged = await guardedCall(table, { point: 'tool-args', toolCall }, [toolCall.arguments], ctx);
    return { arguments: judged.texts[0] ?? '', deny: judged.deny, ask: judged.ask };
  }
  const judged = await guardedCall(table, { point: 'tool-args', toolCall, args }, stringsIn(args), ctx);
  return { arguments: judged.args === undefined ? toolCall.arguments : JSON.stringify(judged.args), deny: judged.deny, ask: judged.ask };
}

/** A guard that breaks while judging a call refuses that call; the run goes on. */
async function guardedCall(table: GuardTable, subject: Omit<GuardSubject, 'text'>, texts: readonly string[], ctx: Context): Promise<Judged> {
  try {
    return await judge(table['tool-args'], subject, texts, ctx);
  } catch (error) {
    if (!(error instanceof AlliumError && error.code === 'GUARD_FAILED')) throw error;
    return { texts: texts.map(() => ''), changed: true, ...(subject.args !== undefined && { args: {} }), deny: { reason: 'A guard failed while judging this call, so it was not run.', by: 'guard' } };
  }
}

/** Every string in a JSON value, in order. */
function stringsIn(value: unknown, out: string[] = []): string[] {
  if (typeof value === 'string') out.push(value);
  else if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) stringsIn(item, out);
  return out;
}

/** The same JSON value with its strings replaced, in order. */
function withStrings(value: unknown, strings: readonly string[]): unknown {
  let i = 0;
  const walk = (item: unknown): unknown => {
    if (typeof item === 'string') return strings[i++] ?? '';
    if (Array.isArray(item)) return item.map(walk);
    if (typeof item !== 'object' || item === null) return item;
    return Object.fromEntries(Object.entries(item).map(([key, inner]) => [key, walk(inner)]));
  };
  return walk(value);
}

/** Judges a response that did not stream: a preset, cached or replaced one. */
export async function guardResponse(table: GuardTable, response: ModelResponse, ctx: Context): Promise<{ content: ModelResponse['content']; calls: CallVerdicts }> {
  const gate = new ResponseGate(table, ctx, () => {});
  for (const [index, part] of response.content.entries()) {
    if (part.type === 'text' || part.type === 'thinking') gate.push(part.type, index, part.text);
  }
  const { content } = await gate.end(response);
  return { content, calls: gate.calls };
}
