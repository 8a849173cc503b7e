/** One fake language model of the AI SDK for all who take one, and the jobs of the SDK itself on it. */
import { ReadableStream } from 'node:stream/web';
import { DELTA, turnOf } from './models.mjs';
import { ARGUMENTS, DESCRIPTION, execute, executed, NAME, SCHEMA } from './tool.mjs';

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};
const CALLS = { unified: 'tool-calls', raw: undefined };
const STOP = { unified: 'stop', raw: undefined };

/** The prompt carries the system prompt as its first message. */
const turnIn = (options) => turnOf(options.prompt.length - 1);

/** Asks for one tool call in each of `turns` turns, then answers with text. `version` is that of the specification. */
export function callingLanguageModel(version, turns) {
  const callAt = (turn) => ({
    type: 'tool-call',
    toolCallId: `call-${turn}`,
    toolName: NAME,
    input: ARGUMENTS,
  });
  return languageModel(
    version,
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

/** Answers with `count` small pieces of text. */
export function talkingLanguageModel(version, count) {
  return languageModel(version, undefined, () => textParts(count, DELTA));
}

function* textParts(count, piece) {
  yield { type: 'text-start', id: '0' };
  for (let i = 0; i < count; i++) yield { type: 'text-delta', id: '0', delta: piece };
  yield { type: 'text-end', id: '0' };
  yield { type: 'finish', finishReason: STOP, usage };
}

function languageModel(version, answer, parts) {
  return {
    specificationVersion: version,
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

/**
 * The jobs of one version of the package `ai`.
 *
 * @param {object} sdk
 * @param {string} sdk.version of the specification it speaks natively: another one would be converted on the way
 * @param {Function} sdk.tool
 * @param {Function} sdk.generateText
 * @param {Function} sdk.streamText
 * @param {(turns: number) => object} sdk.options what a request has besides model, tools and prompt
 * @param {(result: object) => AsyncIterable<object>} sdk.partsOf the stream of everything
 */
export function jobsOf({ version, tool, generateText, streamText, options, partsOf }) {
  const tools = { [NAME]: tool({ description: DESCRIPTION, inputSchema: SCHEMA, execute }) };
  const request = (model, turns) => ({ model, tools, prompt: 'go', ...options(turns) });
  return {
    turns({ turns }) {
      const model = callingLanguageModel(version, turns);
      return async () => {
        const before = executed.count;
        await generateText(request(model, turns));
        return executed.count - before;
      };
    },
    events({ turns }) {
      const model = callingLanguageModel(version, turns);
      return async () => {
        let ended = 0;
        for await (const part of partsOf(streamText(request(model, turns))))
          if (part.type === 'tool-result') ended += 1;
        return ended;
      };
    },
    deltas({ count }) {
      const model = talkingLanguageModel(version, count);
      return async () => {
        let seen = 0;
        let text = '';
        for await (const part of partsOf(streamText(request(model, 1)))) {
          if (part.type !== 'text-delta') continue;
          text += part.text;
          seen += 1;
        }
        return text === '' ? 0 : seen;
      };
    },
  };
}
