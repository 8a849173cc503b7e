/** A model that follows a script: no network, no keys, the same every time. */
import { AlliumError, shown } from '../kernel/errors.js';
import { type AssistantContent, assistantMessage, type FinishReason, type ModelResponse, type Usage } from '../kernel/messages.js';
import type { Model, ModelPart, ModelRequest, Price } from '../kernel/model.js';

/** One answer of a scripted model: parts, an error, or a wait. */
export interface ScriptStep {
  readonly parts: readonly (ModelPart | 'tick')[];
  /** Thrown after the parts. */
  readonly error?: unknown;
  /** Never ends by itself; ends when the signal aborts. */
  readonly hangs?: boolean;
}

export type Script = ScriptStep | string | readonly AssistantContent[] | ((request: ModelRequest, call: number) => ScriptStep | string);

export interface ScriptedModel extends Model {
  /** Every request so far, as the model received it. */
  readonly requests: readonly ModelRequest[];
  /** Steps not used yet. */
  readonly remaining: number;
  /** How many streams were cancelled through the signal. */
  readonly aborted: number;
}

export interface ScriptedModelOptions {
  readonly provider?: string;
  readonly id?: string;
  readonly price?: Price;
  /** Usage of steps that state none. @default 10 tokens in, 5 out */
  readonly usage?: Partial<Usage>;
  /** Goes back to the first step after the last. @default false */
  readonly repeat?: boolean;
}

const DEFAULT_USAGE: Partial<Usage> = { inputTokens: 10, outputTokens: 5 };

/** An answer of text, streamed in one piece. */
export function text(content: string, usage?: Partial<Usage>): ScriptStep {
  return { parts: [{ type: 'text', text: content }, finish('stop', usage)] };
}

/** An answer that asks for tools. `args` is any JSON value, or raw text. Ids are made from the order of the calls. */
export function toolCalls(...calls: readonly { readonly name: string; readonly args?: unknown; readonly id?: string; readonly text?: string }[]): ScriptStep {
  return {
    parts: [
      ...calls.flatMap(({ name, args = {}, id, text: before }, index): ModelPart[] => [
        ...(before === undefined ? [] : [{ type: 'text' as const, text: before }]),
        { type: 'tool-call', id: id ?? `call_${index + 1}`, name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
      ]),
      finish('tool-calls'),
    ],
  };
}

/** An answer in pieces: text, or any parts. Without a `finish` part one is added. */
export function chunks(...pieces: readonly (string | ModelPart | 'tick')[]): ScriptStep {
  const parts = pieces.map((piece): ModelPart | 'tick' => (typeof piece === 'string' && piece !== 'tick' ? { type: 'text', text: piece } : (piece as ModelPart)));
  const ended = parts.some((part) => part !== 'tick' && part.type === 'finish');
  const calls = parts.some((part) => part !== 'tick' && part.type === 'tool-call');
  return { parts: ended ? parts : [...parts, finish(calls ? 'tool-calls' : 'stop')] };
}

/** Fails with this error, after streaming the given pieces. */
export function failWith(error: unknown, ...before: readonly (string | ModelPart)[]): ScriptStep {
  return { parts: before.map((piece) => (typeof piece === 'string' ? { type: 'text' as const, text: piece } : piece)), error };
}

/** Streams the given pieces and then waits for ever, or until it is aborted. */
export function hang(...before: readonly (string | ModelPart)[]): ScriptStep {
  return { ...failWith(undefined, ...before), hangs: true };
}

function finish(reason: FinishReason, usage?: Partial<Usage>): ModelPart {
  return { type: 'finish', reason, ...(usage && { usage }) };
}

/**
 * A model that gives the steps of its script one after the other and records what it was asked. Asked more often
 * than it has steps, it fails with SCRIPT_EXHAUSTED.
 *
 * @example
 * const model = scriptedModel([toolCalls({ name: 'add', args: { a: 1, b: 2 } }), text('3')]);
 */
export function scriptedModel(script: readonly Script[], options: ScriptedModelOptions = {}): ScriptedModel {
  const { provider = 'test', id = 'scripted', price, usage = DEFAULT_USAGE, repeat = false } = options;
  if (!Array.isArray(script)) throw new AlliumError('INVALID_OPTION', `scriptedModel() takes a list of steps, got ${shown(script)}.`);
  const requests: ModelRequest[] = [];
  let aborted = 0;
  return {
    provider,
    id,
    ...(price && { price }),
    get requests() {
      return requests;
    },
    get remaining() {
      return Math.max(0, script.length - requests.length);
    },
    get aborted() {
      return aborted;
    },
    async *stream(request, callOptions) {
      const call = requests.push(request);
      const given = script[repeat ? (call - 1) % script.length : call - 1];
      if (given === undefined) {
        throw new AlliumError('SCRIPT_EXHAUSTED', `The scripted model was called ${call} times, but its script has ${script.length} steps. Last message: ${shown(request.messages.at(-1)?.content)}.`);
      }
      const step = toStep(typeof given === 'function' ? given(request, call) : given);
      for (const part of step.parts) {
        if (part === 'tick') await new Promise((resolve) => setImmediate(resolve));
        else yield part.type === 'finish' && part.usage === undefined ? { ...part, usage } : part;
      }
      if (step.hangs) {
        await new Promise((_, reject) => {
          const { signal } = callOptions;
          const stop = (): void => {
            aborted++;
            reject(signal.reason);
          };
          if (signal.aborted) stop();
          else signal.addEventListener('abort', stop, { once: true });
        });
      }
      if (step.error !== undefined) throw step.error;
    },
  };
}

function toStep(given: ScriptStep | string | readonly AssistantContent[]): ScriptStep {
  if (typeof given === 'string') return text(given);
  if ('parts' in given) return given;
  const { content, stopReason }: ModelResponse = assistantMessage(given);
  return { parts: [...(content as readonly ModelPart[]), finish(stopReason)] };
}
