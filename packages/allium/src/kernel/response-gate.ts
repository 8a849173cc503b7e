/** Judges one response, piece by piece as it streams or whole. */
import { readable, redactValue, withContent, withheldThinking, withoutMetadata } from './content-guards.js';
import type { Context, SeamCall } from './context.js';
import { attribution, codeOf, isControl } from './errors.js';
import {
  type GuardTable,
  isSame,
  type Judged,
  judge,
  latching,
  type PlannedGuard,
  refuses,
  replaced,
  skipOrThrow,
  spansOf,
  stopFor,
  tell,
} from './guards.js';
import { JoinedText, type MakeStages } from './joined-text.js';
import { asJson, readArguments, type Text, textsOfValue, unescaped } from './json-texts.js';
import type { AssistantContent, ModelResponse, ProviderContent, ToolCall } from './messages.js';
import type { GuardPoint } from './middleware.js';
import { SpanStage } from './span-stage.js';

/** A guard refused a call because of its arguments, or wants a human to agree. */
export type CallVerdict = Pick<Judged, 'deny' | 'ask'>;

/** By place in the content. */
export type CallVerdicts = Map<number, CallVerdict>;

/** What the guards left of the content of a response. */
export interface JudgedContent {
  readonly content: ModelResponse['content'];
  readonly calls: CallVerdicts;
  /** A judge wrote some of it anew. */
  readonly rewritten: boolean;
}

const NOTHING_SAID: Pick<JoinedText, 'blocks' | 'safe'> = { blocks: [], safe: [] };

/** Nobody had anything to say. */
export const NO_VERDICTS: CallVerdicts = new Map();

/** Text of the block at this place in the content. */
export interface BlockText {
  readonly block: number;
  readonly text: string;
}

type Kind = 'text' | 'thinking';

const POINT_OF = { text: 'output', thinking: 'thinking' } as const;
const POINTS = ['output', 'thinking', 'final', 'tool-args'] as const;

export function guardsResponses(table: GuardTable): boolean {
  return POINTS.some((point) => table[point].length > 0);
}

/** Can text of this kind go out while it streams, or only when it is complete? */
function streamable(table: GuardTable, type: Kind): boolean {
  if (type === 'text' && table.final.length > 0) return false;
  return table[POINT_OF[type]].every(
    ({ guard }) => guard.find && !guard.judge && typeof guard.hold === 'object',
  );
}

/** A guard objects to text that streams. Whether that counts is known when the layers have agreed on a response. */
export class Objection extends Error {}

/** A refusal is thrown as StopRun, a broken guard as GUARD_FAILED. Both are latched, at the end of the stream. */
export class ResponseGate {
  /** Verdicts about calls, for the tool phase. */
  private readonly calls: CallVerdicts = new Map();
  private rewritten = false;
  /** What is to be told of text that streamed, once it counts. */
  private untold: (() => void)[] = [];
  /** What it says, and what it thinks. */
  private readonly said: { [K in Kind]?: JoinedText } = {};
  private readonly table: GuardTable;

  constructor(
    private readonly ctx: Context,
    /** Others may yet take the place of the response: until its end an Objection is thrown, and nothing is latched. */
    private streaming: boolean,
    /** Takes what leaves the ring while the response streams. */
    private readonly released: (type: Kind, block: number, text: string) => void,
  ) {
    this.table = ctx.plan.guards;
  }

  /** A piece of text or thinking of block `index`. */
  push(type: Kind, index: number, text: string): void {
    const joined = this.said[type] ?? this.open(type);
    joined.push(index, text);
  }

  /** No more text of a block comes. */
  close(index: number): void {
    this.said.text?.close(index);
    this.said.thinking?.close(index);
  }

  /** The text that has been released, by block, after letting go of what is final by now. */
  settled(): readonly BlockText[] {
    this.streaming = false;
    this.tellAll();
    this.said.thinking?.settle();
    this.said.text?.settle();
    const { blocks, safe } = this.said.text ?? NOTHING_SAID;
    return blocks.map((block, i) => ({ block, text: safe[i]! }));
  }

  /** The stream is complete: flushes, judges what had to wait, and returns what may be seen. */
  async end(response: ModelResponse, ctx: Context = this.ctx): Promise<JudgedContent> {
    this.streaming = false;
    this.tellAll();
    this.said.thinking?.end();
    this.said.text?.end();
    await this.judgeHeld(response, 'thinking', ctx);
    await this.judgeHeld(response, 'text', ctx);
    const args = await this.judgeCalls(response, ctx);
    const content = response.content.map((part, index) =>
      part.type === 'provider' ? this.seenData(part, ctx) : this.seen(part, index, args),
    );
    const { calls, rewritten } = this;
    return { content: isSame(content, response.content) ? response.content : content, calls, rewritten };
  }

  private tellAll(): void {
    for (const tellOne of this.untold) tellOne();
    this.untold = [];
  }

  private seen(part: AssistantContent, index: number, args: ReadonlyMap<number, string>): AssistantContent {
    if (part.type === 'tool-call') {
      const text = args.get(index);
      return text === undefined ? part : { ...withoutMetadata(part), arguments: text };
    }
    if (part.type !== 'text' && part.type !== 'thinking') return part;
    const { blocks, safe } = this.said[part.type] ?? NOTHING_SAID;
    const text = safe[blocks.indexOf(index)];
    if (text === undefined || text === part.text) return part;
    return part.type === 'text' ? { ...withoutMetadata(part), text } : withheldThinking(part, text);
  }

  /** What a provider returned beside text. It is searched like text; a judge finds it in the message. */
  private seenData(found: ProviderContent, ctx: Context): AssistantContent {
    const part = readable(found);
    const given = asJson(part.value);
    const { value, deny } = latching(ctx, () => redactValue('output', given, ctx));
    if (deny) throw stopFor(deny, ctx);
    return value === given ? part : { ...withoutMetadata(part), value };
  }

  private open(type: Kind): JoinedText {
    const make: MakeStages = (out, outNext) => this.stages(POINT_OF[type], out, outNext);
    const joined = new JoinedText(streamable(this.table, type) ? make : undefined, (block, text) =>
      this.released(type, block, text),
    );
    this.said[type] = joined;
    return joined;
  }

  /** From the last guard to the first: each hands on to the one after it. */
  private stages(point: GuardPoint, out: (text: string) => void, outNext: () => void): SpanStage[] {
    const stages: SpanStage[] = [];
    for (const planned of this.table[point].toReversed()) {
      const [next] = stages;
      stages.unshift(
        next
          ? this.stage(
              planned,
              point,
              (text) => next.push(text),
              () => next.next(),
            )
          : this.stage(planned, point, out, outNext),
      );
    }
    return stages;
  }

  private stage(
    planned: PlannedGuard,
    point: GuardPoint,
    out: (text: string) => void,
    outNext: () => void,
  ): SpanStage {
    const { ctx } = this;
    return new SpanStage({
      hold: (planned.guard.hold as { chars: number }).chars,
      find: (text, from) => {
        try {
          return spansOf(planned, point, text, from, ctx);
        } catch (error) {
          if (this.streaming && !planned.open) throw new Objection();
          const skip = (): void => latching(ctx, () => skipOrThrow(planned, error, ctx));
          if (this.streaming && !isControl(error)) this.untold.push(skip);
          else skip();
          return [];
        }
      },
      replacement: (span) => {
        if (this.streaming) {
          if (refuses(planned)) throw new Objection();
          this.untold.push(() => tell(planned, point, ctx));
        } else {
          const refusal = tell(planned, point, ctx);
          if (refusal) throw stopFor(refusal, ctx);
        }
        return planned.guard.action === 'warn' ? undefined : replaced(planned, span);
      },
      out,
      outNext,
    });
  }

  /** Text that no window covers: all guards see the whole of it. */
  private async judgeHeld(response: ModelResponse, type: Kind, ctx: Context): Promise<void> {
    const joined = this.said[type];
    if (!joined?.isHeld) return;
    const points: GuardPoint[] = [POINT_OF[type]];
    if (type === 'text' && !response.content.some((part) => part.type === 'tool-call')) points.push('final');
    let texts: readonly Text[] = [joined.held];
    for (const point of points) {
      if (this.table[point].length === 0) continue;
      const judged = await latching(ctx, () =>
        judge(this.table[point], { point, message: response }, texts, ctx),
      );
      if (judged.deny) throw stopFor(judged.deny, ctx);
      texts = judged.texts;
      this.rewritten ||= judged.rewritten;
    }
    for (const [i, text] of texts[0]!.entries()) joined.release(i, text);
  }

  private async judgeCalls(response: ModelResponse, ctx: Context): Promise<Map<number, string>> {
    const rewritten = new Map<number, string>();
    if (this.table['tool-args'].length === 0) return rewritten;
    for (const [index, call] of response.content.entries()) {
      if (call.type !== 'tool-call') continue;
      const before = await heldTo(call, ctx);
      const judged = await judgeArguments(call, ctx);
      const { arguments: text, rewritten: anew, deny = before?.deny, ask = before?.ask } = judged;
      this.rewritten ||= anew;
      if (deny || ask) this.calls.set(index, { deny, ask });
      if (text !== call.arguments) rewritten.set(index, text);
    }
    for (const [index, left] of rewritten) {
      const said = this.calls.get(index);
      if (said) remember(response.content[index] as ToolCall, left, said, ctx);
    }
    return rewritten;
  }
}

/**
 * What guards said of a call holds as well for what they left of it, which a sink, layer or hook may put into another
 * response to the same request: of that they could not say it. It is known by what it says, and until the model is asked
 * again by its id.
 */
export function remember(call: ToolCall, left: string, said: CallVerdict, { _call: seam }: Context): void {
  seam.judged ??= new Map();
  for (const key of [textKey({ ...call, arguments: left }), idKey(call, seam)])
    seam.judged.set(key, Promise.resolve(said));
}

async function heldTo(call: ToolCall, { _call: seam }: Context): Promise<CallVerdict | undefined> {
  return seam.judged?.get(textKey(call)) ?? seam.judged?.get(idKey(call, seam));
}

function textKey({ name, arguments: args }: ToolCall): string {
  return `${name}\n${args}`;
}

/** Without an id it is known by what it says only. */
function idKey(call: ToolCall, { attempts }: SeamCall): string {
  return call.id ? `${attempts} ${call.id}` : textKey(call);
}

/**
 * Did guards refuse a call of what they left here, or want to ask about one? They could not say so again, as they would
 * see only what they left: such an answer serves no other call.
 */
export function hasVerdict({ content }: ModelResponse, ctx: Context): boolean {
  const { judged } = ctx._call;
  return (
    judged !== undefined && content.some((part) => part.type === 'tool-call' && judged.has(textKey(part)))
  );
}

/** Judges a response that did not stream: a preset, cached or replaced one. */
export async function guardResponse(response: ModelResponse, ctx: Context): Promise<JudgedContent> {
  const gate = new ResponseGate(ctx, false, () => {});
  for (const [index, part] of response.content.entries())
    if (part.type === 'text' || part.type === 'thinking') gate.push(part.type, index, part.text);
  return gate.end(response);
}

/** The response as it may be seen. */
export function asJudged(response: ModelResponse, judged: JudgedContent, ctx: Context): ModelResponse {
  if (judged.content === response.content) return response;
  return latching(ctx, () => withContent(POINTS, response, judged, ctx));
}

/**
 * Judges the arguments of a call, parsed; text that is not JSON is judged as it reads. A guard that breaks refuses the
 * call and withholds its arguments; the run goes on.
 */
export async function judgeArguments(
  toolCall: ToolCall,
  ctx: Context,
): Promise<{ arguments: string } & Pick<Judged, 'rewritten' | 'deny' | 'ask'>> {
  const { arguments: given } = toolCall;
  const read = readArguments(given);
  const subject = { point: 'tool-args', toolCall, ...(read && { args: read.args }) } as const;
  const said: readonly Text[] = read ? textsOfValue(read.args).texts : [[unescaped(given)]];
  try {
    const { texts, args, rewritten, deny, ask } = await judge(
      ctx.plan.guards['tool-args'],
      subject,
      said,
      ctx,
    );
    const unread = texts[0] === said[0] ? given : (texts[0]?.join('') ?? '');
    const kept = args === read?.args ? (read?.kept ?? unread) : JSON.stringify(args);
    return { arguments: kept, rewritten, deny, ask };
  } catch (error) {
    if (codeOf(error) !== 'GUARD_FAILED') throw error;
    const reason = 'A guard failed while judging this call, so it was not run.';
    const by = attribution(error)?.middleware ?? 'guard';
    return { arguments: read ? '{}' : '', rewritten: true, deny: { reason, by }, ask: undefined };
  }
}
