/** Notices that a run goes in circles: the same calls, with the same arguments and the same results. */

import {
  defineMiddleware,
  defineState,
  type Middleware,
  syntheticUserMessage,
  type ToolCall,
  type ToolContext,
  type ToolMessage,
  type TurnContext,
  toolCallsOf,
} from '../../index.js';
import {
  canonicalJson,
  checkValue,
  type Fields,
  hashText,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
  yesOrNo,
} from '../../kit/index.js';

export const OPTIONS = {
  /** How many of the latest turns with tool calls to look at: an integer from 2 to 1000. @default 6 */
  window: kinds.withDefault(kinds.integer(2, 1000), 6),
  /** How many identical turns make a loop: an integer from 2 to `window`. @default 3 */
  repeats: kinds.withDefault(kinds.integer(2), 3),
  /** Tools that may repeat, such as those that poll: names, or a function of the call. @default none */
  ignore: kinds.withDefault(
    {
      ...kinds.either(kinds.names, kinds.func<(toolCall: ToolCall) => boolean>()),
      expected: 'a list of tool names or a function',
    },
    [],
  ),
  /** `nudge` tells the model once and stops the run if it goes on; `stop` stops at once. @default 'nudge' */
  action: kinds.withDefault(kinds.oneOf('nudge', 'stop'), 'nudge'),
  ...named('loop-guard'),
} satisfies Fields;

export interface LoopGuardOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

interface Seen {
  /** Fingerprints of the latest turns, oldest first, in one text: that takes less space than a list. */
  readonly turns: string;
  /** The model has been told. */
  readonly nudged: boolean;
  /** The model has to be told now. */
  readonly due: boolean;
}

const NUDGE =
  'You have made the same tool calls with the same arguments several times, and the results were the same each time. ' +
  'Do something else: try other arguments or another tool, or answer with what you have.';

/**
 * Stops runs that go in circles, after telling the model once. Two turns are alike if they make the same calls with
 * the same arguments and get the same results, in whatever order.
 *
 * @example
 * new Agent({ model, tools: [search], middleware: [loopGuard({ repeats: 2 })] });
 */
export function loopGuard(options: LoopGuardOptions = {}): Middleware {
  const { window, repeats, ignore, action, name, madeWith } = readOptions('loopGuard', OPTIONS, options);
  checkValue('repeats', kinds.integer(2, window), repeats);
  const ignored = ignoring(ignore);
  const seen = defineState<Seen>({
    name: 'seen',
    scope: 'run',
    version: 2,
    initial: { turns: '', nudged: false, due: false },
    migrate: (old) => {
      const { turns, ...rest } = old as Seen & { readonly turns: readonly string[] };
      return { ...rest, turns: turns.join('') };
    },
  });
  // Calls of the latest turn that an ignored tool answered under another name, as with `deferredTools`.
  const resolved = defineState<readonly string[]>({ name: 'resolved', scope: 'run', initial: [] });
  const noteResolved = (ctx: ToolContext): void => {
    const { toolCall, assistantMessage } = ctx;
    const asked = toolCallsOf(assistantMessage).find(({ id }) => id === toolCall.id);
    if (asked === undefined || asked === toolCall || !ignored(toolCall)) return;
    ctx.state.update(resolved, (ids) => [...ids, toolCall.id]);
  };
  return defineMiddleware({
    name,
    madeWith,
    looksBack: 0,
    ...(typeof ignore !== 'function' && { mentions: ignore }),
    state: [seen, resolved],
    ...((typeof ignore === 'function' || ignore.length > 0) && { afterToolCall: noteResolved }),
    shouldStopAfterTurn(ctx) {
      const spared = ctx.state.get(resolved);
      if (spared.length > 0) ctx.state.set(resolved, []);
      const now = fingerprint(ctx, (call) => spared.includes(call.id) || ignored(call));
      if (now === undefined) return undefined;
      const { turns: before, nudged } = ctx.state.get(seen);
      const turns = (before + now).slice(-window * WIDTH);
      const alike = count(turns, now);
      const loops = alike >= repeats;
      const due = loops && action === 'nudge' && !nudged;
      ctx.state.set(seen, { turns, nudged: nudged || due, due });
      if (!loops) return undefined;
      const message = `The same tool calls had the same results ${alike} times in ${turns.length / WIDTH} turns.`;
      // What is returned here passes `onRunEnd`, where the nudge keeps the run going; a stop doesn't.
      return due ? { reason: 'loop', message } : ctx.stop('loop', message);
    },
    onRunEnd(ctx) {
      const value = ctx.state.get(seen);
      if (!value.due) return undefined;
      ctx.state.set(seen, { ...value, due: false });
      return [syntheticUserMessage(NUDGE, { source: 'loop-guard' })];
    },
  });
}

/** Characters of a fingerprint. */
const WIDTH = 22;

function count(turns: string, wanted: string): number {
  let found = 0;
  for (let at = turns.indexOf(wanted); at >= 0; at = turns.indexOf(wanted, at + 1))
    if (at % WIDTH === 0) found++;
  return found;
}

function ignoring(ignore: NonNullable<LoopGuardOptions['ignore']>): (toolCall: ToolCall) => boolean {
  if (typeof ignore === 'function') return yesOrNo('ignore', ignore);
  const names = new Set(ignore);
  return ({ name }) => names.has(name);
}

/** One text for what the turn asked and got; undefined if it called no tool that counts. */
function fingerprint(
  { message, toolResults }: TurnContext,
  ignored: (toolCall: ToolCall) => boolean,
): string | undefined {
  const calls = message ? toolCallsOf(message) : [];
  const lines: string[] = [];
  for (let i = 0; i < calls.length; i++) {
    const call = calls[i]!;
    if (ignored(call)) continue;
    const result = resultOf(call, i, toolResults);
    lines.push(`${canonicalJson(call.name)} ${argumentsOf(call)} ${result?.isError} ${contentOf(result)}`);
  }
  if (lines.length === 0) return undefined;
  return hashText(lines.length === 1 ? lines[0]! : lines.sort().join('\n'));
}

/** Usually every call has its result, in the same order. */
function resultOf({ id }: ToolCall, place: number, results: readonly ToolMessage[]): ToolMessage | undefined {
  const there = results[place];
  return there?.toolCallId === id ? there : results.find(({ toolCallId }) => toolCallId === id);
}

/** Usually one text, which needs no sorting. */
function contentOf(result: ToolMessage | undefined): string {
  const only = result?.content.length === 1 ? result.content[0] : undefined;
  if (only?.type === 'text' && Object.keys(only).length === 2) return canonicalJson(only.text);
  return canonicalJson(result?.content);
}

/** Parsed, so that spaces and the order of keys make no difference. */
function argumentsOf({ arguments: text }: ToolCall): string {
  try {
    return canonicalJson(text === '' ? {} : JSON.parse(text));
  } catch {
    return canonicalJson(text);
  }
}
