/** The AI SDK, with a language model of its own specification. */
import { ReadableStream } from 'node:stream/web';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import { DELTA, turnOf } from '../work/models.mjs';
import { ARGUMENTS, DESCRIPTION, execute, executed, NAME, SCHEMA, SYSTEM_PROMPT } from '../work/tool.mjs';

export const what =
  '`generateText()`, or `streamText()` with `for await` over `fullStream`; validates with zod';

globalThis.AI_SDK_LOG_WARNINGS = false;

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};
const CALLS = { unified: 'tool-calls', raw: undefined };
const STOP = { unified: 'stop', raw: undefined };
const tools = { [NAME]: tool({ description: DESCRIPTION, inputSchema: SCHEMA, execute }) };

/** The prompt carries the system prompt as its first message. */
const turnIn = (options) => turnOf(options.prompt.length - 1);

function callingModel(turns) {
  const callAt = (turn) => ({
    type: 'tool-call',
    toolCallId: `call-${turn}`,
    toolName: NAME,
    input: ARGUMENTS,
  });
  return languageModel(
    (options) => {
      const turn = turnIn(options);
      return turn < turns
        ? { content: [callAt(turn)], finishReason: CALLS, usage, warnings: [] }
        : { content: [{ type: 'text', text: 'done' }], finishReason: STOP, usage, warnings: [] };
    },
    function* (options) {
      const turn = turnIn(options);
      if (turn < turns) {
        yield callAt(turn);
        yield { type: 'finish', finishReason: CALLS, usage };
      } else yield* textParts(1, 'done');
    },
  );
}

function* textParts(count, piece) {
  yield { type: 'text-start', id: '0' };
  for (let i = 0; i < count; i++) yield { type: 'text-delta', id: '0', delta: piece };
  yield { type: 'text-end', id: '0' };
  yield { type: 'finish', finishReason: STOP, usage };
}

function languageModel(answer, parts) {
  return {
    specificationVersion: 'v3',
    provider: 'bench',
    modelId: 'bench',
    supportedUrls: {},
    doGenerate: async (options) => answer(options),
    doStream: async (options) => ({ stream: streamOf(parts(options)) }),
  };
}

function streamOf(parts) {
  return new ReadableStream({
    start(controller) {
      controller.enqueue({ type: 'stream-start', warnings: [] });
    },
    pull(controller) {
      const { done, value } = parts.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
}

const request = (model, turns) => ({
  model,
  tools,
  system: SYSTEM_PROMPT,
  prompt: 'go',
  stopWhen: stepCountIs(turns + 1),
});

export function turns({ turns }) {
  const model = callingModel(turns);
  return async () => {
    const before = executed.count;
    await generateText(request(model, turns));
    return executed.count - before;
  };
}

export function events({ turns }) {
  const model = callingModel(turns);
  return async () => {
    let ended = 0;
    for await (const part of streamText(request(model, turns)).fullStream)
      if (part.type === 'tool-result') ended += 1;
    return ended;
  };
}

export function deltas({ count }) {
  const model = languageModel(undefined, () => textParts(count, DELTA));
  return async () => {
    let seen = 0;
    let text = '';
    for await (const part of streamText(request(model, 1)).fullStream) {
      if (part.type !== 'text-delta') continue;
      text += part.text;
      seen += 1;
    }
    return text === '' ? 0 : seen;
  };
}
