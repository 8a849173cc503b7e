/** Laws about calls: how they are aborted, how they fail, and that they do not disturb each other. */

import type { Model, ModelPart, ModelRequest } from '../../index.js';
import { deepFreeze, describeValue, messageOf } from '../../kit/index.js';
import { expectSame } from '../same.js';
import {
  capabilities,
  contentOf,
  Late,
  type ModelCheck,
  type ModelLawContext,
  read,
  readAll,
  within,
} from './context.js';

/** A stream with nothing left but its `finish` part may still send it: nobody can say whether the answer or the abort was first. */
export const abort: ModelCheck<'abort'> = {
  law: 'abort',
  statement: 'An abort ends the stream soon, before its first part, after it and near the end.',
  async check(context) {
    await expectAbort(context, 'before its first part', 0);
    await expectAbort(context, 'after its first part', 1);
    // This finds a model that looks at the signal only at the beginning. A call that fails is the business of other laws.
    const whole = await read(context, context.text.request()).catch(() => []);
    const before = whole.findIndex((part) => part?.type === 'finish');
    if (before > 2) await expectAbort(context, 'before its last piece', before - 1);
  },
};

async function expectAbort(context: ModelLawContext, when: string, after: number): Promise<void> {
  const { open, text, abortWithinMs, timeoutMs } = context;
  const controller = new AbortController();
  if (after === 0) controller.abort(new Error('The kit aborts.'));
  let parts: readonly ModelPart[] = [];
  try {
    const iterator = iteratorOf(open(), text.request(), controller.signal);
    for (let i = 0; i < after; i++)
      await within(timeoutMs, `Part ${i + 1} did not come`, Promise.resolve(iterator.next()));
    controller.abort(new Error('The kit aborts.'));
    parts = await within(abortWithinMs, `A stream that was aborted ${when} did not end`, rest(iterator));
  } catch (error) {
    // An aborted stream usually rejects, with whatever error it likes.
    if (error instanceof Late) throw error;
  }
  const place = parts.findIndex((part) => part?.type === 'finish');
  if (place > 0 || (place === 0 && after === 0)) {
    throw new Error(
      `Expected a stream that was aborted ${when} to stop, but it went on to its \`finish\` part. Check \`signal\` before each part.`,
    );
  }
}

type Parts = { next(): IteratorResult<ModelPart> | Promise<IteratorResult<ModelPart>> };

function iteratorOf(model: Model, request: ModelRequest, signal: AbortSignal): Parts {
  const stream = model.stream(request, { signal });
  return Symbol.asyncIterator in stream ? stream[Symbol.asyncIterator]() : stream[Symbol.iterator]();
}

async function rest(iterator: Parts): Promise<ModelPart[]> {
  const parts: ModelPart[] = [];
  for (;;) {
    const { done, value } = await iterator.next();
    if (done) return parts;
    parts.push(value);
  }
}

export const errorsReject: ModelCheck<'errors-reject'> = {
  law: 'errors-reject',
  statement: 'When a call fails, its stream rejects. It does not end like an answer.',
  needs: ({ failing }) => (failing ? undefined : 'It needs `failing`.'),
  async check({ failing, timeoutMs }) {
    const { open, request } = failing!;
    let parts: readonly ModelPart[];
    try {
      parts = await within(timeoutMs, 'The failing call did not end', readAll(open(), request()));
    } catch (error) {
      if (error instanceof Late) throw error;
      if (error === undefined || error === null)
        throw new Error(`Expected the stream to reject with an error, got ${error}.`);
      return;
    }
    throw new Error(
      `Expected the stream of the failing call to reject, but it ended with ${describeValue(parts.at(-1))}.`,
    );
  },
};

export const concurrentCalls: ModelCheck<'concurrent-calls'> = {
  law: 'concurrent-calls',
  statement: 'One model serves any number of calls at once, and each gets its own answer.',
  async check(context) {
    const requests = [context.text.request, context.toolCall.request, context.text.request];
    const alone: ReturnType<typeof contentOf>[] = [];
    for (const request of requests) alone.push(contentOf(await read(context, request())));
    const model = context.open();
    const calls = requests.map((request) => readAll(model, request()));
    const together = await within(context.timeoutMs, 'Three calls at once did not end', Promise.all(calls));
    for (const [i, parts] of together.entries()) {
      const [content, expected] = [contentOf(parts), alone[i]!];
      const what = `answer ${i + 1} of 3 calls at once`;
      if (context.deterministic) expectSame(content, expected, what, { as: 'when it is called alone' });
      else expectSame(content.length > 0, expected.length > 0, `whether ${what} has any content`);
    }
  },
};

export const requestUnchanged: ModelCheck<'request-unchanged'> = {
  law: 'request-unchanged',
  statement: 'The model does not change its request, so the caller can send it again.',
  async check(context) {
    for (const { request } of capabilities(context)) {
      const sent = request();
      await read(context, sent);
      expectSame(sent, request(), 'the request after the call', { as: 'before it' });
      await read(context, deepFreeze(request())).catch((error) => {
        throw new Error(`Expected a frozen request to be answered like any other, got: ${messageOf(error)}`, {
          cause: error,
        });
      });
    }
  },
};
