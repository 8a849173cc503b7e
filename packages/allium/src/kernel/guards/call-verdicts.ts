/** What guards say of the arguments of calls, and what it holds for. */
import type { Context, SeamCall } from '../context/context.js';
import { attribution, codeOf } from '../lib/errors.js';
import { readArguments, type Text, textsOfValue, unescaped } from '../lib/json-texts.js';
import type { ModelResponse, ToolCall } from '../protocol/messages.js';
import { type Judged, judge } from './guards.js';

/** A guard refused a call because of its arguments, or wants a human to agree. */
export type CallVerdict = Pick<Judged, 'deny' | 'ask'>;

/** By place in the content. */
export type CallVerdicts = Map<number, CallVerdict>;

/** Nobody had anything to say. */
export const NO_VERDICTS: CallVerdicts = new Map();

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

/**
 * Remembers what guards said of a call, for a response that holds what they left of it: they could not say it again. A sink that
 * answers with what it wrote down earlier calls this before it answers.
 */
export function remember(call: ToolCall, left: string, said: CallVerdict, { _call: seam }: Context): void {
  seam.judged ??= new Map();
  for (const key of [textKey({ ...call, arguments: left }), idKey(call, seam)])
    seam.judged.set(key, Promise.resolve(said));
}

export async function heldTo(call: ToolCall, { _call: seam }: Context): Promise<CallVerdict | undefined> {
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
 * Did guards refuse a call of this response, or want to ask about one? They would not say so again of what they left of it, so
 * such a response must not be kept to answer other requests.
 */
export function hasVerdict({ content }: ModelResponse, ctx: Context): boolean {
  const { judged } = ctx._call;
  return (
    judged !== undefined && content.some((part) => part.type === 'tool-call' && judged.has(textKey(part)))
  );
}
