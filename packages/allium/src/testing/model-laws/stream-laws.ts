/** Laws about the stream itself: its shape, its parts, its end. */

import { type ModelPart, modelName } from '../../index.js';
import { describeValue, isThenable, ResponseAssembler } from '../../kit/index.js';
import { expectSame } from '../same.js';
import { capabilities, type ModelCheck, read, within } from './context.js';

/** It has a name, and `stream()` returns the stream itself. */
export const streamShape: ModelCheck<'stream-shape'> = {
  law: 'stream-shape',
  async check({ open, text, timeoutMs }) {
    const model = open();
    for (const key of ['provider', 'id'] as const) {
      if (typeof model[key] === 'string' && model[key] !== '') continue;
      throw new Error(`Expected \`${key}\` to be non-empty text, got ${describeValue(model[key])}.`);
    }
    const stream: unknown = model.stream(text.request(), { signal: new AbortController().signal });
    const advice = 'It is no async function: make it an async generator.';
    if (isThenable(stream)) {
      stream.then(undefined, () => {});
      throw new Error(`Expected stream() to return the stream itself, got a promise. ${advice}`);
    }
    if (!isIterable(stream))
      throw new Error(
        `Expected stream() to return an async iterable, got ${describeValue(stream)}. ${advice}`,
      );
    // What is in it is for other laws, but it is not left open.
    await within(timeoutMs, 'The answer did not end', drain(stream)).catch(() => {});
  },
};

/** Every part is one the kernel knows, and fits to those before it. */
export const validParts: ModelCheck<'valid-parts'> = {
  law: 'valid-parts',
  async check(context) {
    for (const { request } of capabilities(context)) {
      const assembler = new ResponseAssembler(modelName(context.open()));
      for (const part of await read(context, request())) if (part?.type !== 'finish') assembler.add(part);
    }
  },
};

/** `finish` comes once, last, and with a known reason. */
export const finish: ModelCheck<'finish'> = {
  law: 'finish',
  async check(context) {
    for (const { request } of capabilities(context)) {
      const parts = await read(context, request());
      const places = parts.flatMap((part, i) => (part?.type === 'finish' ? [i + 1] : []));
      if (places.length === 0)
        throw new Error(
          `Expected the stream to end with a \`finish\` part, got ${describeValue(parts.at(-1))}.`,
        );
      expectSame(places, [parts.length], 'the places of `finish` among the parts');
      new ResponseAssembler(modelName(context.open())).add(parts.at(-1)!);
    }
  },
};

/** `finish` tells how many tokens were used: by this call, not by all so far. */
export const usage: ModelCheck<'usage'> = {
  law: 'usage',
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
    // A live model may have more to say the second time.
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
      `Expected ${key} of a request that is sent again to be no more than the first time (${before}), got ${after}. Report the usage of one call, not a running total.`,
    );
}

function expectUsage({ usage: given }: Finish, hasText: boolean): void {
  const { inputTokens, outputTokens, totalTokens } = given ?? {};
  const others = Object.values(given ?? {}).filter((value) => value !== undefined);
  if (![inputTokens, outputTokens, ...others].every(isCount)) {
    throw new Error(
      `Expected \`usage\` of the finish part to hold inputTokens and outputTokens, and only numbers ≥ 0, got ${describeValue(given)}.`,
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
