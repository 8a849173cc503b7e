/** A model that follows a script: no network, no keys, the same every time. */

import {
  AlliumError,
  type AssistantContent,
  assistantMessage,
  type FinishReason,
  type Model,
  type ModelPart,
  type ModelRequest,
  type ModelResponse,
  type Price,
  type Usage,
} from '../index.js';
import { checkKeys, describeValue, invalidOption, isThenable } from '../kit/index.js';
/** One answer of a scripted model: parts, an error, or a wait. */
export interface ScriptStep {
  /** What is streamed. `'tick'` yields nothing and lets everything else that is ready run first. */
  readonly parts: readonly (ModelPart | 'tick')[];
  /** Thrown after the parts. */
  readonly error?: unknown;
  /** Never ends by itself; ends when the signal aborts. */
  readonly hangs?: boolean;
}

/** The ways to write a step. */
export type Answer = ScriptStep | string | readonly AssistantContent[];
/** An answer, or a function that makes one from the request and the number of the call, from 1. */
export type Script = Answer | ((request: ModelRequest, call: number) => Answer);

export interface ScriptedModel extends Model {
  /** Every request so far, as it was when the model received it. */
  readonly requests: readonly ModelRequest[];
  /** Steps not used yet; infinitely many with `repeat`. */
  readonly remaining: number;
  /** How many streams were cancelled through the signal. */
  readonly aborted: number;
}

export interface ScriptedModelOptions {
  readonly provider?: string;
  readonly id?: string;
  readonly price?: Price;
  /** Usage of steps that state none. What it leaves out is 0. @default 10 tokens in, 5 out */
  readonly usage?: Partial<Usage>;
  /** Goes back to the first step after the last. @default false */
  readonly repeat?: boolean;
}

/** The usage of steps that state none. */
const DEFAULT_USAGE: Partial<Usage> = { inputTokens: 10, outputTokens: 5 };

/** An answer of text, streamed in one piece. What `usage` leaves out is 0. */
export function text(content: string, usage?: Partial<Usage>): ScriptStep {
  return { parts: [{ type: 'text', text: content }, finish('stop', usage && stated(usage))] };
}

/** Counts that the script leaves out are 0. Otherwise the kernel would estimate them. */
function stated(usage: Partial<Usage>): Partial<Usage> {
  checkKeys('usage', usage, ['inputTokens', 'outputTokens', 'cacheRead', 'cacheWrite', 'totalTokens']);
  return { inputTokens: 0, outputTokens: 0, ...usage };
}

/** An answer that asks for tools. `args` is any JSON value, or raw text. Ids are made from the order of the calls. */
export function toolCalls(
  ...calls: readonly {
    readonly name: string;
    readonly args?: unknown;
    readonly id?: string;
    readonly text?: string;
  }[]
): ScriptStep {
  for (const call of calls) {
    if (typeof call?.name !== 'string')
      throw invalidOption('calls', 'objects such as { name, args, id, text }', call);
    checkKeys('toolCalls', call, ['name', 'args', 'id', 'text']);
  }
  return {
    parts: [
      ...calls.flatMap(({ name, args = {}, id, text: before }, index): ModelPart[] => [
        ...(before === undefined ? [] : [{ type: 'text' as const, text: before }]),
        {
          type: 'tool-call',
          id: id ?? `call_${index + 1}`,
          name,
          arguments: typeof args === 'string' ? args : jsonOf(args, name),
        },
      ]),
      finish('tool-calls'),
    ],
  };
}

function jsonOf(args: unknown, name: string): string {
  let json: string | undefined;
  try {
    json = JSON.stringify(args);
  } catch {
    // The error is thrown below.
  }
  if (json === undefined) throw invalidOption(`args of ${name}`, 'JSON, or text that is sent as it is', args);
  return json;
}

/**
 * An answer in pieces: text, or any parts. Without a `finish` part one is added. The piece `'tick'` is a pause, not
 * text: to stream that word, write `{ type: 'text', text: 'tick' }`.
 */
export function chunks(...pieces: readonly (string | ModelPart | 'tick')[]): ScriptStep {
  const parts = pieces.map(toPart);
  const ended = parts.some((part) => part !== 'tick' && part.type === 'finish');
  const calls = parts.some((part) => part !== 'tick' && part.type === 'tool-call');
  return { parts: ended ? parts : [...parts, finish(calls ? 'tool-calls' : 'stop')] };
}

/** Fails with this error, after streaming the given pieces. */
export function failWith(error: unknown, ...before: readonly (string | ModelPart | 'tick')[]): ScriptStep {
  return { parts: before.map(toPart), error };
}

/** Streams the given pieces and then waits for ever, or until it is aborted. */
export function hang(...before: readonly (string | ModelPart | 'tick')[]): ScriptStep {
  return { parts: before.map(toPart), hangs: true };
}

function toPart(piece: string | ModelPart): ModelPart | 'tick' {
  if (typeof piece !== 'string' && typeof piece?.type !== 'string')
    throw invalidOption('pieces', "text, parts of a stream or 'tick'", piece);
  return typeof piece !== 'string' || piece === 'tick'
    ? (piece as ModelPart | 'tick')
    : { type: 'text', text: piece };
}

function finish(reason: FinishReason, usage?: Partial<Usage>): ModelPart {
  return { type: 'finish', reason, ...(usage && { usage }) };
}

/**
 * A model that answers with the steps of its script, one after the other, and records its requests. A call after the
 * last step fails with SCRIPT_EXHAUSTED.
 *
 * @example
 * const model = scriptedModel([toolCalls({ name: 'add', args: { a: 1, b: 2 } }), text('3')]);
 */
export function scriptedModel(script: readonly Script[], options: ScriptedModelOptions = {}): ScriptedModel {
  checkKeys('scriptedModel', options, ['provider', 'id', 'price', 'usage', 'repeat']);
  const { provider = 'test', id = 'scripted', price, usage = DEFAULT_USAGE, repeat = false } = options;
  if (typeof repeat !== 'boolean') throw invalidOption('repeat', 'true or false', repeat);
  if (!Array.isArray(script)) throw invalidOption('script', 'a list of steps', script);
  // Spread, so that holes in the list are checked too.
  [...script].forEach(checkStep);
  const unstated = stated(usage);
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
      return repeat ? Number.POSITIVE_INFINITY : Math.max(0, script.length - requests.length);
    },
    get aborted() {
      return aborted;
    },
    async *stream(request, callOptions) {
      const asked = snapshot(request);
      const call = requests.push(asked);
      const given = script[repeat ? (call - 1) % script.length : call - 1];
      if (given === undefined) throw exhausted(asked, call, script.length);
      const step = toStep(typeof given === 'function' ? answerOf(given, asked, call) : given);
      yield* play(step, { options: callOptions, usage: unstated, onAbort: () => aborted++ });
    },
  };
}

/** Streams one step. An abort ends it, its pauses and its waiting with the reason of the signal. */
export async function* play(
  step: ScriptStep,
  given: {
    readonly options: { readonly signal: AbortSignal };
    readonly usage?: Partial<Usage>;
    readonly onAbort?: () => void;
    readonly tick?: () => Promise<void>;
    readonly hang?: (signal: AbortSignal) => Promise<void>;
  },
): AsyncGenerator<ModelPart> {
  const { usage = DEFAULT_USAGE, onAbort, tick = nextTick, hang: wait = untilAborted } = given;
  const { signal } = given.options;
  const throwIfAborted = (): void => {
    if (!signal.aborted) return;
    onAbort?.();
    throw signal.reason;
  };
  for (const part of step.parts) {
    throwIfAborted();
    if (part === 'tick') await tick();
    else yield part.type === 'finish' && part.usage === undefined ? { ...part, usage } : part;
  }
  if (step.hangs) await wait(signal);
  throwIfAborted();
  if ('error' in step) throw step.error;
}

/** A step from any of the ways to write one. */
export function toStep(given: Answer): ScriptStep {
  if (typeof given === 'string') return text(given);
  if ('parts' in given) return given;
  const { content, stopReason }: ModelResponse = assistantMessage(given);
  return { parts: [...(content as readonly ModelPart[]), finish(stopReason)] };
}

/** The request as it is now: its lists are made when they are read, and the context behind them goes on changing. */
export function snapshot({ messages, systemPrompt, tools, settings }: ModelRequest): ModelRequest {
  const list = Object.isFrozen(messages) ? messages : Object.freeze([...messages]);
  return Object.freeze({ messages: list, systemPrompt, tools, settings });
}

const STEPS = 'a step made by text(), toolCalls(), chunks(), failWith() or hang()';

function checkStep(step: Script, index: number): void {
  if (typeof step === 'function') return;
  if (!isAnswer(step))
    throw invalidOption(`script[${index}]`, `text, a list of content, a function, or ${STEPS}`, step);
  checkParts(step, `script[${index}]`);
}

/** Calls a function of the script and checks its answer. */
function answerOf(
  step: Extract<Script, (...args: never[]) => unknown>,
  asked: ModelRequest,
  call: number,
): Answer {
  const answer: unknown = step(asked, call);
  const what = `what the function for call ${call} of the script returns`;
  if (isThenable(answer)) {
    answer.then(undefined, () => {});
    throw new AlliumError(
      'INVALID_OPTION',
      `Expected ${what} to be an answer, got a promise. A script answers at once: make the function a plain one.`,
    );
  }
  if (!isAnswer(answer))
    throw new AlliumError(
      'INVALID_OPTION',
      `Expected ${what} to be text, a list of content, or ${STEPS}, got ${describeValue(answer)}.`,
    );
  checkParts(answer, what);
  return answer;
}

export function isAnswer(value: unknown): value is Answer {
  if (typeof value === 'string' || Array.isArray(value)) return true;
  return typeof value === 'object' && value !== null && Array.isArray((value as ScriptStep).parts);
}

function checkParts(answer: Answer, where: string): void {
  // With a misspelt `hangs` or `error` the stream would just be cut off.
  if (typeof answer === 'object' && 'parts' in answer) checkKeys(where, answer, ['parts', 'error', 'hangs']);
  const parts: readonly unknown[] =
    typeof answer === 'string' ? [] : 'parts' in answer ? answer.parts : answer;
  const wrong = parts.findIndex(
    (part) => part !== 'tick' && typeof (part as ModelPart | null)?.type !== 'string',
  );
  if (wrong < 0) return;
  throw new AlliumError(
    'INVALID_OPTION',
    `Expected part ${wrong + 1} of ${where} to be an object with a type, got ${describeValue(parts[wrong])}.`,
  );
}

function exhausted(request: ModelRequest, call: number, steps: number): AlliumError {
  const last = describeValue(request.messages.at(-1)?.content);
  return new AlliumError(
    'SCRIPT_EXHAUSTED',
    `The scripted model was called ${call} times, but its script has ${steps} ${steps === 1 ? 'step' : 'steps'}. Last message: ${last}. Add a step, pass repeat: true, or find out why it was called again.`,
    { data: { call, steps } },
  );
}

function nextTick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
