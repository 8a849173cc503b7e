/** Verdicts of guards about tool calls: made, remembered, and written to the journal. */

import type { Context, SeamCall } from '../context/context.js';
import { internal } from '../context/context.js';
import type { CallVerdict, CallVerdicts } from '../context/run-port.js';
import { type Asker, askersOf, asking, reworded } from '../journal/merged-questions.js';
import { attribution, codeOf } from '../lib/errors.js';
import { mapStrings, readArguments, type Text, textsOfValue, unescaped } from '../lib/json-texts.js';
import type { AssistantMessage, ModelResponse, ToolCall } from '../messages/messages.js';
import { textOf } from '../messages/messages.js';
import type { Context as PublicContext } from '../protocol/contexts.js';
import type { PlannedGuard } from '../protocol/middleware.js';
import type { EntryDraft } from '../protocol/store.js';
import { judgeUpdate } from './content-guards.js';
import { type Judged, judgeTexts } from './guards.js';
import { hider, restoredValue } from './restore.js';

/** No guard objected. */
export const NO_VERDICTS: CallVerdicts = new Map();

/**
 * Judges the arguments of a call, parsed; if they aren't JSON, as plain text. If a guard breaks, the call is refused and its
 * arguments are withheld, but the run continues.
 */
export async function judgeArguments(
  toolCall: ToolCall,
  ctx: Context,
): Promise<{ arguments: string } & Pick<Judged, 'rewritten' | 'deny' | 'ask'>> {
  const { arguments: given } = toolCall;
  const read = readArguments(given);
  try {
    const first = read && (await judgeOriginals(toolCall, read.args, ctx));
    const { guards = ctx.plan.guards['tool-args'], args: begin = read?.args } = first ?? {};
    const subject = { point: 'tool-args', toolCall, ...(read && { args: begin }) } as const;
    const said: readonly Text[] = read ? textsOfValue(begin).texts : [[unescaped(given)]];
    const { texts, args, rewritten, ...then } = await judgeTexts(guards, subject, said, ctx);
    const unread = texts[0] === said[0] ? given : (texts[0]?.join('') ?? '');
    const kept = args === read?.args ? (read?.kept ?? unread) : JSON.stringify(args);
    const deny = first?.deny ?? then.deny;
    const ask = deny ? undefined : asking(first?.ask, then.ask);
    return { arguments: kept, rewritten: rewritten || first?.rewritten === true, deny, ask };
  } catch (error) {
    if (codeOf(error) !== 'GUARD_FAILED') throw error;
    const reason = 'A guard failed while judging this call, so it was not run.';
    const by = attribution(error)?.middleware ?? 'guard';
    return { arguments: read ? '{}' : '', rewritten: true, deny: { reason, by }, ask: undefined };
  }
}

/**
 * The verdict of guards that want to see what the tool gets, and what they leave of the arguments, with placeholders again.
 * `guards` are the others.
 */
async function judgeOriginals(
  toolCall: ToolCall,
  args: unknown,
  ctx: Context,
): Promise<(Omit<Judged, 'texts'> & { readonly guards: readonly PlannedGuard[] }) | undefined> {
  const { restores, guards: all } = ctx.plan;
  const wanting = restores.length > 0 ? all['tool-args'].filter(({ guard }) => guard.originals) : [];
  if (wanting.length === 0) return undefined;
  const guards = all['tool-args'].filter((planned) => !wanting.includes(planned));
  const to = { for: 'tool', tool: toolCall.name, context: ctx } as const;
  const originals = restoredValue(restores, args, to);
  const shown = { ...toolCall, arguments: JSON.stringify(originals) };
  const subject = { point: 'tool-args', toolCall: shown, args: originals } as const;
  const said = await judgeTexts(wanting, subject, textsOfValue(originals).texts, ctx);
  // The other guards may not recognise a value that they once found by the words around it.
  const hide = hider(restores, args, to);
  const left = said.changed ? mapStrings(said.args, hide) : args;
  const deny = said.deny && { ...said.deny, reason: hide(said.deny.reason) };
  return { ...said, args: left, deny, ask: said.ask && reworded(said.ask, hide), guards };
}

/**
 * Remembers verdicts about a call whose arguments were cleaned, since guards wouldn't find anything in them again. A sink that
 * answers from a recording calls this before it answers.
 */
export function rememberVerdict(call: ToolCall, left: string, said: CallVerdict, ctx: PublicContext): void {
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

/** A call without an id is identified by its text only. */
function idKey(call: ToolCall, { attempts }: SeamCall): string {
  return call.id ? `${attempts} ${call.id}` : textKey(call);
}

/**
 * Did guards refuse a call of this response, or ask about one? They wouldn't do so again after cleaning it, so such a response
 * must not be cached.
 */
export function hasCallVerdict({ content }: ModelResponse, ctx: PublicContext): boolean {
  const { judged } = internal(ctx)._call;
  return (
    judged !== undefined && content.some((part) => part.type === 'tool-call' && judged.has(textKey(part)))
  );
}

/** Used instead of the hash of arguments in verdict entries of guards. */
export const BY_GUARDS = 'guards';

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
 * A verdict as it may be written. The reason of a refusal becomes a tool result, which is judged later, so for now only
 * guards that answer synchronously clean it.
 */
export function tellable({ deny, ask }: CallVerdict, ctx: Context): CallVerdict {
  if (!deny) return storable({ ask });
  const { reason, by } = deny;
  const shown = judgeUpdate([{ type: 'text', text: reason }], undefined, ctx, true);
  return { deny: { reason: shown ? textOf({ content: shown.update }) : `Refused by guard "${by}".`, by } };
}

/** A verdict without the functions of its request, which can't be journaled. */
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
