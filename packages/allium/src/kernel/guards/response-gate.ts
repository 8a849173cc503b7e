/** Judges one response: piece by piece while it streams, or as a whole. */

import type { Context } from '../context/context.js';
import type { CallVerdicts } from '../context/run-port.js';
import { isSameList, type Text, textsOfValue, toStoredJson } from '../lib/json-texts.js';
import { readable, withheldThinking, withoutMetadata } from '../messages/content-texts.js';
import type { AssistantContent, ModelResponse, ProviderContent, ToolCall } from '../messages/messages.js';
import type { GuardPoint } from '../protocol/guard.js';
import type { GuardTable, PlannedGuard } from '../protocol/middleware.js';
import { isControl } from '../protocol/signals.js';
import { heldTo, judgeArguments, rememberVerdict } from './call-verdicts.js';
import { redactValue, withCleanMetadata, withContent } from './content-guards.js';
import { judgeTexts, latching, skipOrThrow, spansOf } from './guards.js';
import { JoinedText, type MakeStages } from './joined-text.js';
import { SpanStage } from './redact-stream.js';
import { refuses, replaced, reportFindings, stopFor } from './refusal.js';

export interface JudgedContent {
  readonly content: ModelResponse['content'];
  readonly calls: CallVerdicts;
  /** A judge rewrote some of it. */
  readonly rewritten: boolean;
}

/** The guard point at which a part and its metadata are judged. */
const POINT_OF = {
  text: 'output',
  thinking: 'thinking',
  'tool-call': 'tool-args',
  file: 'output',
  provider: 'output',
} as const satisfies Record<AssistantContent['type'], GuardPoint>;

/** The provider content of a response, with its texts. */
function dataIn({ content }: ModelResponse) {
  return content.flatMap((part, index) => {
    const json = part.type === 'provider' ? toStoredJson(readable(part).value) : undefined;
    return json === undefined ? [] : { index, said: textsOfValue(json) };
  });
}

const NOTHING_SAID: Pick<JoinedText, 'blocks' | 'safe'> = { blocks: [], safe: [] };

/** The text of the block with this index in the content. */
export interface BlockText {
  readonly block: number;
  readonly text: string;
}

type Kind = 'text' | 'thinking';

const POINTS = ['output', 'thinking', 'final', 'tool-args'] as const;

export function guardsResponses(table: GuardTable): boolean {
  return POINTS.some((point) => table[point].length > 0);
}

/** Can text of this kind be released while it streams? */
function streamable(table: GuardTable, type: Kind): boolean {
  if (type === 'text' && table.final.length > 0) return false;
  return table[POINT_OF[type]].every(
    ({ guard }) => guard.find && !guard.judge && typeof guard.hold === 'object',
  );
}

/** A guard objects to streaming text. It only counts if the layers choose this response. */
export class Objection extends Error {}

/** Throws refusals as control signals, and GUARD_FAILED for broken guards. Both are latched at the end of the stream. */
export class ResponseGate {
  /** Verdicts about calls, for the tool phase. */
  private readonly calls: CallVerdicts = new Map();
  private rewritten = false;
  /** The text that a judge gave a response which had none. */
  private anew: string | undefined;
  /** Provider content after judging it with the text, by index. */
  private readonly data = new Map<number, unknown>();
  /** Reports about streamed text, for when the response counts. */
  private untold: (() => void)[] = [];
  private readonly said: { [K in Kind]?: JoinedText } = {};
  private readonly table: GuardTable;

  constructor(
    private ctx: Context,
    /** Layers may still replace the response: until its end, refusals throw an Objection and nothing is latched. */
    private streaming: boolean,
    /** Receives released text while the response streams. */
    private readonly released: (type: Kind, block: number, text: string) => void,
  ) {
    this.table = ctx.plan.guards;
  }

  /** Adds a piece of text or thinking of block `index`. */
  push(type: Kind, index: number, text: string): void {
    const joined = this.said[type] ?? this.open(type);
    joined.push(index, text);
  }

  close(index: number): void {
    this.said.text?.close(index);
    this.said.thinking?.close(index);
  }

  /** Releases what is final and returns the text released so far, by block. */
  settled(): readonly BlockText[] {
    this.streaming = false;
    this.reportAll();
    this.said.thinking?.releaseFinal();
    this.said.text?.releaseFinal();
    const { blocks, safe } = this.said.text ?? NOTHING_SAID;
    return blocks.map((block, i) => ({ block, text: safe[i]! }));
  }

  /** The stream is complete: judges everything that was held back, and returns the content that may be shown. */
  async end(response: ModelResponse, ctx: Context = this.ctx): Promise<JudgedContent> {
    this.streaming = false;
    // By now the layers have taken over what guards wrote to cells in the context of the stream.
    this.ctx = ctx;
    this.reportAll();
    this.said.thinking?.end();
    this.said.text?.end();
    await this.judgeHeld(response, 'thinking', ctx);
    await this.judgeHeld(response, 'text', ctx);
    const args = await this.judgeCalls(response, ctx);
    const content: AssistantContent[] = this.anew === undefined ? [] : [{ type: 'text', text: this.anew }];
    const calls: CallVerdicts = new Map();
    for (const [index, given] of response.content.entries()) {
      // It may repeat the old text.
      if (given.type === 'provider' && this.rewritten) continue;
      const said = this.calls.get(index);
      if (said) calls.set(content.length, said);
      const part =
        given.type === 'provider' ? this.seenData(given, index, ctx) : this.seen(given, index, args);
      content.push(withCleanMetadata(part, POINT_OF[part.type], ctx));
    }
    const { rewritten } = this;
    return { content: isSameList(content, response.content) ? response.content : content, calls, rewritten };
  }

  private reportAll(): void {
    for (const tellOne of this.untold) tellOne();
    this.untold = [];
  }

  private seen(part: AssistantContent, index: number, args: ReadonlyMap<number, string>): AssistantContent {
    if (part.type === 'tool-call') {
      const text = args.get(index);
      return this.named(text === undefined ? part : { ...withoutMetadata(part), arguments: text });
    }
    if (part.type !== 'text' && part.type !== 'thinking') return part;
    const { blocks, safe } = this.said[part.type] ?? NOTHING_SAID;
    const text = safe[blocks.indexOf(index)];
    if (text === undefined || text === part.text) return part;
    return part.type === 'text' ? { ...withoutMetadata(part), text } : withheldThinking(part, text);
  }

  /** Models make up ids, and sometimes tool names, so these are judged too. A call without an id gets a new one later. */
  private named(call: ToolCall): ToolCall {
    const { ctx } = this;
    if (this.table['tool-args'].length === 0) return call;
    const clean = (text: string): boolean => {
      const { value, deny } = redactValue('tool-args', text, ctx, true);
      return value === text && !deny;
    };
    const id = call.id && !clean(call.id) ? '' : call.id;
    const name = ctx.plan.toolsByName.has(call.name) || clean(call.name) ? call.name : 'unknown';
    return id === call.id && name === call.name ? call : { ...call, id, name };
  }

  /** Provider content, searched like text. */
  private seenData(found: ProviderContent, index: number, ctx: Context): AssistantContent {
    if (this.data.has(index)) return { ...withoutMetadata(found), value: this.data.get(index) };
    const part = readable(found);
    if (this.said.text?.isHeld) return part;
    const given = toStoredJson(part.value);
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

  /** Built from the last guard to the first: each passes text on to the next. */
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
    return new SpanStage({
      hold: (planned.guard.hold as { chars: number }).chars,
      find: (text, from) => {
        const { ctx } = this;
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
        const { ctx } = this;
        if (this.streaming) {
          if (refuses(planned)) throw new Objection();
          this.untold.push(() => reportFindings(planned, point, [span], ctx));
        } else {
          const refusal = reportFindings(planned, point, [span], ctx);
          if (refusal) throw stopFor(refusal, ctx);
        }
        return planned.guard.action === 'warn' ? undefined : replaced(planned, span);
      },
      out,
      outNext,
    });
  }

  /** Judges text that couldn't stream: all guards see the whole of it. */
  private async judgeHeld(response: ModelResponse, type: Kind, ctx: Context): Promise<void> {
    const joined = this.said[type] ?? this.open(type);
    if (!joined.isHeld) return;
    const data = type === 'text' ? dataIn(response) : [];
    const hasFiles = type === 'text' && response.content.some((part) => part.type === 'file');
    if (joined.blocks.length === 0 && data.length === 0 && !hasFiles) return;
    const points: GuardPoint[] = [POINT_OF[type]];
    if (type === 'text' && !response.content.some((part) => part.type === 'tool-call')) points.push('final');
    const said = joined.blocks.length > 0 ? [joined.held] : [];
    const given: readonly Text[] = [...said, ...data.flatMap((one) => one.said.texts)];
    let texts = given;
    for (const point of points) {
      if (this.table[point].length === 0) continue;
      const judged = await latching(ctx, () =>
        judgeTexts(this.table[point], { point, message: response }, texts, ctx),
      );
      if (judged.deny) throw stopFor(judged.deny, ctx);
      texts = judged.texts;
      this.rewritten ||= judged.rewritten;
      // There is no text to replace.
      if (judged.rewritten && said.length === 0) this.anew = texts.flat().join('');
    }
    for (const [i, text] of said.length > 0 ? texts[0]!.entries() : []) joined.release(i, text);
    let at = said.length;
    for (const { index, said: before } of data) {
      const left = texts.slice(at, at + before.texts.length);
      if (!isSameList(left, before.texts)) this.data.set(index, before.put(left));
      at += before.texts.length;
    }
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
      if (judged.deny?.feedback) throw stopFor(judged.deny, ctx);
      if (deny || ask) this.calls.set(index, { deny, ask });
      if (text !== call.arguments) rewritten.set(index, text);
    }
    for (const [index, left] of rewritten) {
      const said = this.calls.get(index);
      if (said) rememberVerdict(response.content[index] as ToolCall, left, said, ctx);
    }
    return rewritten;
  }
}

/** Judges a response that did not stream: a preset, cached or replaced one. */
export async function guardResponse(response: ModelResponse, ctx: Context): Promise<JudgedContent> {
  const gate = new ResponseGate(ctx, false, () => {});
  for (const [index, part] of response.content.entries())
    if (part.type === 'text' || part.type === 'thinking') gate.push(part.type, index, part.text);
  return gate.end(response);
}

/** The response as it may be shown. */
export function asJudged(response: ModelResponse, judged: JudgedContent, ctx: Context): ModelResponse {
  if (judged.content === response.content && response.metadata === undefined) return response;
  return latching(ctx, () => withContent(POINTS, response, judged, ctx));
}
