/** Laws about the stream itself: its shape, its parts, its end. */

import { type ModelPart, modelName } from '../../index.js';
import { describeValue, isThenable, ResponseAssembler } from '../../kit/index.js';
import { capabilities, type ModelCheck, read, within } from './context.js';

export const streamShape: ModelCheck<'stream-shape'> = {
  law: 'stream-shape',
  statement:
    'The model has a `provider` and an `id`, and `stream()` returns the stream itself, not a promise.',
  async check({ open, text, timeoutMs }) {
    const model = open();
    for (const key of ['provider', 'id'] as const) {
      if (typeof model[key] === 'string' && model[key] !== '') continue;
      throw new Error(`Expected \`${key}\` to be non-empty text, got ${describeValue(model[key])}.`);
    }
    const stream: unknown = model.stream(text.request(), { signal: new AbortController().signal });
    const advice = 'Make it an async generator, not an async function.';
    if (isThenable(stream)) {
      stream.then(undefined, () => {});
      throw new Error(`Expected stream() to return the stream itself, got a promise. ${advice}`);
    }
    if (!isIterable(stream))
      throw new Error(
        `Expected stream() to return an async iterable, got ${describeValue(stream)}. ${advice}`,
      );
    // Read it to its end, so that it isn't left open. Its content is the business of other laws.
    await within(timeoutMs, 'The answer did not end', drain(stream)).catch(() => {});
  },
};

export const validParts: ModelCheck<'valid-parts'> = {
  law: 'valid-parts',
  statement: 'Every part has a known type and fits the parts before it.',
  async check(context) {
    for (const { request } of capabilities(context)) {
      const assembler = new ResponseAssembler(modelName(context.open()));
      for (const part of await read(context, request())) if (part?.type !== 'finish') assembler.add(part);
    }
  },
};

export const finish: ModelCheck<'finish'> = {
  law: 'finish',
  statement: '`finish` comes once, comes last and has a known reason.',
  async check(context) {
    for (const { request } of capabilities(context)) {
      const parts = await read(context, request());
      const places = parts.flatMap((part, i) => (part?.type === 'finish' ? [i + 1] : []));
      if (places.length === 0)
        throw new Error(
          `Expected the stream to end with a \`finish\` part, got ${describeValue(parts.at(-1))}.`,
        );
      if (places.length > 1 || places[0] !== parts.length)
        throw new Error(
          `Expected one \`finish\` part, the last of ${parts.length}, got it as part ${places.join(' and ')}.`,
        );
      new ResponseAssembler(modelName(context.open())).add(parts.at(-1)!);
    }
  },
};

export const usage: ModelCheck<'usage'> = {
  law: 'usage',
  statement: '`finish` reports the tokens of this call, not a running total.',
  async check(context) {
    for (const { request } of capabilities(context)) {
      const parts = await read(context, request());
      const hasText = parts.some((part) => part?.type === 'text' && part.text !== '');
      for (const part of parts) if (part?.type === 'finish') expectUsage(part, hasText);
    }
    const model = context.open();
    const ask = async () => finishOf(await read({ ...context, open: () => model }, context.text.request()));
    const [first, again] = [await ask(), await ask()];
    expectNoMore('inputTokens', first, again);
    // A live model may say more the second time.
    if (context.deterministic) expectNoMore('outputTokens', first, again);
  },
};

type Finish = Extract<ModelPart, { type: 'finish' }>;

function finishOf(parts: readonly ModelPart[]): Finish | undefined {
  return parts.find((part) => part?.type === 'finish');
}

function expectNoMore(
  key: 'inputTokens' | 'outputTokens',
  first: Finish | undefined,
  again: Finish | undefined,
): void {
  const [before, after] = [first?.usage?.[key] ?? 0, again?.usage?.[key] ?? 0];
  if (after > before)
    throw new Error(
      `Expected ${key} to be the same or less when a request is sent again (${before} the first time), got ${after}. Report the usage of one call, not a running total.`,
    );
}

function expectUsage({ usage: given }: Finish, hasText: boolean): void {
  const { inputTokens, outputTokens, totalTokens } = given ?? {};
  const others = Object.values(given ?? {}).filter((value) => value !== undefined);
  if (![inputTokens, outputTokens, ...others].every(isCount)) {
    throw new Error(
      `Expected \`usage\` of the finish part to have inputTokens and outputTokens, and only numbers ≥ 0, got ${describeValue(given)}.`,
    );
  }
  if (hasText && outputTokens === 0)
    throw new Error(
      `Expected outputTokens of an answer with text to be more than 0, got ${describeValue(given)}.`,
    );
  if (totalTokens !== undefined && totalTokens < inputTokens! + outputTokens!) {
    throw new Error(
      `Expected totalTokens to be at least inputTokens + outputTokens, got ${describeValue(given)}.`,
    );
  }
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

function isIterable(value: unknown): value is AsyncIterable<unknown> | Iterable<unknown> {
  return (
    typeof value === 'object' && value !== null && (Symbol.asyncIterator in value || Symbol.iterator in value)
  );
}

async function drain(stream: AsyncIterable<unknown> | Iterable<unknown>): Promise<void> {
  for await (const _ of stream);
}
