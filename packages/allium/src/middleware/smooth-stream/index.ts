/** Shows streamed text word by word at an even pace, however the provider sends it. */

import {
  type Clock,
  defineMiddleware,
  type Middleware,
  type Model,
  type ModelPart,
  monotonic,
  sleep,
} from '../../index.js';
import {
  type Fields,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from '../../kit/index.js';

export const OPTIONS = {
  /** Milliseconds from one piece to the next. A model that is slower is not slowed down further. @default 10 */
  delayMs: kinds.withDefault(kinds.number(0), 10),
  /** What a piece is: a word with the space after it, a whole line, or a single character. @default 'word' */
  by: kinds.withDefault(kinds.oneOf('word', 'line', 'character'), 'word'),
  /** Where the time comes from. @default the agent's */
  clock: kinds.clock(),
  ...named('smooth-stream'),
} satisfies Fields;

export interface SmoothStreamOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/**
 * Cuts text and thinking into even pieces and paces them. It changes when something is shown, never what. If nobody
 * watches, it does nothing.
 *
 * @example
 * new Agent({ model, middleware: [smoothStream({ by: 'word', delayMs: 15 })] });
 */
export function smoothStream(options: SmoothStreamOptions = {}): Middleware {
  const { delayMs, by, clock, name, madeWith } = readOptions('smoothStream', OPTIONS, options);
  return defineMiddleware({
    name,
    madeWith,
    looksBack: 0,
    beforeModel(ctx) {
      // Nobody waits for the words of a call that a middleware makes for itself.
      if (!ctx.isWatched || ctx.caller !== undefined) return;
      ctx.model = smoothed(ctx.model, { delayMs, piece: PIECES[by], clock: clock ?? ctx.agent.clock });
    },
  });
}

/** The next piece of a text; doesn't match while it may still grow. */
const PIECES = { word: /^\s*\S+\s+/, line: /^[^\n]*\n+/, character: /^./su } as const;

interface Pace {
  readonly delayMs: number;
  readonly piece: RegExp;
  readonly clock: Clock;
}

/** The same model, paced. A model and not a stream transform, since only a model may take its time. */
function smoothed(model: Model, pace: Pace): Model {
  const { provider, id, price, jsonMode, contextWindow } = model;
  return {
    provider,
    id,
    ...(price && { price }),
    ...(jsonMode !== undefined && { jsonMode }),
    ...(contextWindow !== undefined && { contextWindow }),
    stream: (request, call) => paced(model.stream(request, call), pace, call),
  };
}

type Text = Extract<ModelPart, { type: 'text' | 'thinking' }>;

async function* paced(
  parts: AsyncIterable<ModelPart> | Iterable<ModelPart>,
  { delayMs, piece, clock }: Pace,
  call: { readonly signal: AbortSignal },
): AsyncGenerator<ModelPart> {
  /** Text that isn't a whole piece yet. */
  let held: Text | undefined;
  let due = Number.NEGATIVE_INFINITY;
  const turn = async (): Promise<void> => {
    const wait = due - monotonic(clock);
    if (wait > 0) await sleep(wait, call.signal, clock);
    due = monotonic(clock) + delayMs;
  };
  for await (const part of parts) {
    const plain = isPlain(part);
    if (held && !(plain && part.type === held.type && part.block === held.block)) {
      await turn();
      yield held;
      held = undefined;
    }
    if (!plain || (part.text === '' && !held)) {
      yield part;
      continue;
    }
    const { end, ...rest } = part;
    let text: string = (held?.text ?? '') + part.text;
    for (let match = piece.exec(text); match; match = piece.exec(text)) {
      await turn();
      yield { ...rest, text: match[0] };
      text = text.slice(match[0].length);
    }
    held = undefined;
    if (end) {
      if (text !== '') await turn();
      yield { ...part, text };
    } else if (text !== '') held = { ...rest, text };
  }
  if (held) {
    await turn();
    yield held;
  }
}

/** Signatures and metadata belong to the part they came with: such parts stay as they are. */
function isPlain(part: ModelPart): part is Text {
  return (
    (part.type === 'text' || part.type === 'thinking') && Object.keys(part).every((key) => PLAIN.has(key))
  );
}

const PLAIN = new Set(['type', 'text', 'block', 'end']);
