/** Keeps long results of tools out of the conversation: the model gets a preview, and a tool to read the rest. */

import { hash } from 'node:crypto';
import { checkedCounter, type TokenCounter } from '../../context-window/token-counter.js';
import {
  type Context,
  defineMiddleware,
  defineState,
  isControl,
  type Middleware,
  type StateCell,
  type Tool,
  type ToolContent,
  type ToolContext,
  type ToolResult,
  type ToolResultPatch,
  tool,
  toolResult,
} from '../../index.js';
import {
  type Fields,
  isThenable,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  objectInput,
  readOptions,
  safeErrorMessage,
} from '../../kit/index.js';
import { failure } from '../../own-tools/answers.js';
import { untilAborted } from '../../own-tools/until-aborted.js';
import { beginning, splitsPair } from '../../texts/cut.js';
import { memorySpill, type SpillStore } from './spill.js';

export { fileSpill, memorySpill, type SpillStore } from './spill.js';

export const OPTIONS = {
  /** Tokens of text a result may have, the note about the rest included: an integer ≥ 100. @default 10_000 */
  maxTokens: kinds.withDefault(kinds.integer(100), 10_000),
  /**
   * Stores what is too long: a Map, a Keyv, or anything with `get` and `set`, sync or async. @default
   * memorySpill()
   */
  spill: kinds.methods<SpillStore>('get', 'set'),
  /** Counts the tokens of a text. @default a quarter of its characters */
  tokenCounter: kinds.func<TokenCounter>(),
  ...named('tool-result-limit'),
} satisfies Fields;

export interface ToolResultLimitOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

const READ = 'read_tool_result';

/** Tokens set aside for the note below a text. */
const NOTE_TOKENS = 60;

/**
 * Stores results with more than `maxTokens` and gives the model their beginning and a reference. With the reference,
 * the model reads the rest in pieces through the tool `read_tool_result`.
 *
 * @example
 * new Agent({ model, tools: [log], middleware: [toolResultLimit({ maxTokens: 100 })] });
 */
export function toolResultLimit(options: ToolResultLimitOptions = {}): Middleware {
  const {
    maxTokens,
    spill = memorySpill(),
    tokenCounter,
    name,
    madeWith,
  } = readOptions('toolResultLimit', OPTIONS, options);
  const count = checkedCounter(tokenCounter) ?? quarter;
  const budget = maxTokens - NOTE_TOKENS;
  // Sessions in which something was stored: this one and, in a fork, those it comes from.
  const homes = defineState<readonly string[]>({ name: 'homes', scope: 'session', initial: [] });
  const read = readTool(spill, homes, (text) => fitting(text, budget, count));
  return defineMiddleware({
    name,
    madeWith,
    looksBack: 0,
    state: [homes],
    tools: [read],
    // After the guards: what they removed is not there any more, and nothing of it is stored.
    async afterToolCall(ctx): Promise<ToolResultPatch | undefined> {
      const { content } = ctx.result!;
      const text = textIn(content);
      if (ctx.is(read) || count(text) <= maxTokens) return undefined;
      const shown = fitting(text, budget, count);
      const note = await keep(spill, text, shown.length, ctx);
      const { sessionId, state } = ctx;
      if (!state.get(homes).includes(sessionId))
        state.update(homes, (ids) => (ids.includes(sessionId) ? ids : [...ids, sessionId]));
      const rest = content.filter(({ type }) => type !== 'text');
      return { content: [{ type: 'text', text: `${shown}\n${note}` }, ...rest] };
    },
  });
}

/** Stores the text and says below the preview how to read on, or that the rest is lost if it can't be stored. */
async function keep(spill: SpillStore, text: string, shown: number, ctx: ToolContext): Promise<string> {
  const begin = `[This result has ${text.length} characters; these are the first ${shown}.`;
  // The same for the same text, also after a crash and in a replay, so that an unchanged result looks the same to the
  // model and to `loopGuard`. Nobody can craft a text with the hash of another, and the reference is useless outside
  // its session.
  const ref = hash('sha256', text).slice(0, 24);
  try {
    await settled(spill.set(keyOf(ctx, ctx.sessionId, ref), text), ctx.signal);
    return `${begin} To read on, call ${READ} with ${JSON.stringify({ ref, offset: shown })}.]`;
  } catch (error) {
    if (isControl(error)) throw error;
    // The tool has run and its result is worth something; an error would make the model run it again.
    ctx.emit('tool-result-limit', { toolCallId: ctx.toolCall.id, error: safeErrorMessage(error, ctx) });
    return `${begin} The rest could not be stored.]`;
  }
}

/** Written out rather than hashed, so that no session can reach the keys of another. */
function keyOf({ tenant }: Context, sessionId: string, ref: string): string {
  return `allium:tool-result:${JSON.stringify([tenant ?? null, sessionId, ref])}`;
}

// ── read_tool_result ─────────────────────────────────────────────────────────────────────────────────────────

interface ReadArgs {
  readonly ref: string;
  readonly offset?: number;
  readonly limit?: number;
}

function readTool(
  spill: SpillStore,
  homes: StateCell<readonly string[]>,
  fit: (text: string) => string,
): Tool<ReadArgs, ReadArgs> {
  return tool({
    name: READ,
    description: 'Reads a piece of a tool result that was too long to be shown.',
    input: objectInput<ReadArgs>({
      ref: { type: 'text', description: 'The reference given with the beginning of the result.' },
      offset: {
        type: 'integer',
        description: 'Where to begin, in characters. Default: 0.',
        optional: true,
        min: 0,
      },
      limit: {
        type: 'integer',
        description: 'How many characters. Default: as many as fit.',
        optional: true,
        min: 1,
      },
    }),
    idempotent: true,
    async execute({ ref, offset = 0, limit = Number.POSITIVE_INFINITY }, ctx): Promise<ToolResult> {
      const storedIn = (id: string) => settled(spill.get(keyOf(ctx, id, ref)), ctx.signal);
      let text = await storedIn(ctx.sessionId);
      if (typeof text !== 'string') for (const id of ctx.state.get(homes)) text ??= await storedIn(id);
      if (typeof text !== 'string')
        return failure(
          `There is no stored result "${ref}" in this conversation, or it is gone. Call the tool that made it again.`,
        );
      if (offset >= text.length)
        return failure(`The result has ${text.length} characters; there is nothing at ${offset}.`);
      const from = splitsPair(text, offset) ? offset - 1 : offset;
      const end = Math.min(text.length, from + limit);
      const piece = fit(text.slice(from, splitsPair(text, end) ? end + 1 : end));
      const to = from + piece.length;
      const more = to < text.length ? `Read on with offset ${to}.` : 'This is the end.';
      return toolResult({ content: `${piece}\n[Characters ${from} to ${to} of ${text.length}. ${more}]` });
    },
  });
}

/** What a store returns, now or later. A run that is aborted doesn't wait for it. */
function settled(value: unknown, signal: AbortSignal): unknown {
  return isThenable(value) ? untilAborted(value, signal) : value;
}

// ── Text ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** All text of a result. Most have one part, which is then not copied. */
function textIn(content: readonly ToolContent[]): string {
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
}

function quarter(text: string): number {
  return Math.ceil(text.length / 4);
}

/** A beginning with at most `budget` tokens, about as long as possible, and at least one character. */
function fitting(text: string, budget: number, count: (text: string) => number): string {
  let kept = text;
  for (let tokens = count(kept); tokens > budget && kept.length > 2; tokens = count(kept)) {
    // As if tokens were spread evenly, and a little less. They aren't, so the rest is counted again.
    const chars = Math.floor((kept.length * budget * 0.99) / tokens);
    kept = beginning(kept, Math.max(2, chars));
  }
  return kept;
}
