import type { Context, SeamCall } from '../context/context.js';
import { internal } from '../context/context.js';
import type { CallVerdict, CallVerdicts } from '../context/run-port.js';
import { attribution, codeOf } from '../lib/errors.js';
import { readArguments, type Text, textsOfValue, unescaped } from '../lib/json-texts.js';
import type { AssistantMessage, ModelResponse, ToolCall } from '../messages/messages.js';
import { textOf } from '../messages/messages.js';
import { type Asker, askersOf } from '../protocol/asking.js';
import type { Context as PublicContext } from '../protocol/contexts.js';
import type { EntryDraft } from '../protocol/store.js';
import { judgeUpdate } from './content-guards.js';
import { type Judged, judge } from './guards.js';

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
export function remember(call: ToolCall, left: string, said: CallVerdict, ctx: PublicContext): void {
  const { _call: seam } = internal(ctx);
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
export function hasVerdict({ content }: ModelResponse, ctx: PublicContext): boolean {
  const { judged } = internal(ctx)._call;
  return (
    judged !== undefined && content.some((part) => part.type === 'tool-call' && judged.has(textKey(part)))
  );
}

/** Where the journal has a hash of arguments for what hooks said. */
export const BY_GUARDS = 'guards';

/** What guards said of the calls of a message, as it is written with the message. */
export function verdictEntries(
  ctx: Context,
  { content }: AssistantMessage,
  verdicts: CallVerdicts,
): readonly EntryDraft[] {
  return [...verdicts].map(([index, said]) => {
    const { id: callId } = content[index] as ToolCall;
    const { deny: block, ask } = tellable(said, ctx);
    return {
      type: 'verdict',
      runId: ctx.runId,
      callId,
      hash: BY_GUARDS,
      verdict: { ...(block && { block }), ...(ask && { ask }) },
    };
  });
}

/**
 * What guards said of a call as it may be written: a refusal as far as guards of results that can answer at once allow
 * it, as the result that it becomes is judged later.
 */
export function tellable({ deny, ask }: CallVerdict, ctx: Context): CallVerdict {
  if (!deny) return storable({ ask });
  const { reason, by } = deny;
  const shown = judgeUpdate([{ type: 'text', text: reason }], undefined, ctx, true);
  return { deny: { reason: shown ? textOf({ content: shown.update }) : `Refused by guard "${by}".`, by } };
}

/** Without the functions of a request, which no journal can hold. */
export function storable<V extends Pick<CallVerdict, 'ask'>>({
  ask,
  ...rest
}: V): Omit<V, 'ask'> & Pick<CallVerdict, 'ask'> {
  if (!ask) return rest;
  const [{ request, by }, ...also] = askersOf(ask).map(stored) as [Asker, ...Asker[]];
  return { ...rest, ask: { request, by, ...(also.length > 0 && { also }) } };
}

function stored({ request: { onRequest: _, ...request }, by }: Asker): Asker {
  return { request, by };
}
