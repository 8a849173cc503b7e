/** A model without a network: it plans tool calls by the rules in its README and writes an answer from their results. */
import {
  AlliumError,
  type Message,
  type Model,
  type ModelPart,
  type ModelRequest,
  type Price,
  textOf,
} from '../../index.js';
import { checkOptions } from '../../kit/index.js';
import { answerOf } from './answer.js';
import { type PlannedCall, planOf } from './plan.js';

export interface OfflineModelOptions {
  /** US dollars per million tokens, to try cost limits. @default nothing */
  readonly price?: Price;
}

const FREE: Price = { input: 0, output: 0 };

/**
 * A deterministic model for demos, documentation and first steps. The same request gets the same answer, in any
 * process, and nothing leaves this one. It understands nothing, and says so.
 *
 * @example
 * const agent = new Agent({ model: offlineModel(), tools: [forecast] });
 * const { text } = await agent.run('What is the forecast for Bergen?');
 */
export function offlineModel(options: OfflineModelOptions = {}): Model {
  checkOptions('offlineModel', options, ['price']);
  const { price = FREE } = options;
  for (const key of ['input', 'output'] as const)
    if (!(price?.[key] >= 0))
      throw new AlliumError(
        'INVALID_OPTION',
        `Expected \`price.${key}\` to be a number ≥ 0, got ${price?.[key]}.`,
      );
  return {
    provider: 'allium',
    id: 'offline',
    price,
    async *stream(request, { signal }) {
      signal.throwIfAborted();
      const { text, calls } = reply(request);
      const most = (request.settings.maxOutputTokens ?? Number.POSITIVE_INFINITY) * CHARACTERS_PER_TOKEN;
      let written = 0;
      for (const word of text.split(/(?<=\s)(?=\S)/)) {
        // A turn of the event loop between words, so that an abort is noticed as it is with a network.
        await Promise.resolve();
        signal.throwIfAborted();
        if (word === '') continue;
        if (written + word.length > most) {
          yield finish('length', request, written);
          return;
        }
        written += word.length;
        yield { type: 'text', text: word };
      }
      for (const { id, name, args } of calls) {
        signal.throwIfAborted();
        const json = JSON.stringify(args);
        written += json.length;
        yield { type: 'tool-call', id, name, arguments: json };
      }
      signal.throwIfAborted();
      yield finish(calls.length > 0 ? 'tool-calls' : 'stop', request, written);
    },
  };
}

interface Reply {
  readonly text: string;
  readonly calls: readonly (PlannedCall & { readonly id: string })[];
}

function reply(request: ModelRequest): Reply {
  const plan = planOf(request);
  if (plan.next.length === 0) return { text: answerOf(request, plan), calls: [] };
  // Ids are counted over the conversation: the same request always gets the same ones, and none comes twice in it.
  const turn = request.messages.filter(({ role }) => role === 'assistant').length + 1;
  const calls = plan.next.map((call, index) => ({ ...call, id: `offline-${turn}-${index + 1}` }));
  return { text: `I call ${calls[0]!.name}${plan.again ? ' again: it failed' : ''}.`, calls };
}

const CHARACTERS_PER_TOKEN = 4;

function finish(
  reason: 'stop' | 'length' | 'tool-calls',
  { messages, systemPrompt, tools }: ModelRequest,
  written: number,
): ModelPart {
  const asked =
    systemPrompt.length +
    JSON.stringify(tools).length +
    messages.reduce((sum, message) => sum + lengthOf(message), 0);
  const usage = { inputTokens: tokens(asked), outputTokens: tokens(written) };
  return { type: 'finish', reason, usage, metadata: { offline: true } };
}

function lengthOf(message: Message): number {
  const calls =
    message.role === 'assistant' ? message.content.filter(({ type }) => type === 'tool-call') : [];
  return textOf(message).length + (calls.length > 0 ? JSON.stringify(calls).length : 0);
}

function tokens(characters: number): number {
  return Math.ceil(characters / CHARACTERS_PER_TOKEN);
}
