/** Cassettes: JSON lines made to be read and reviewed. A header, then one line for each model and tool call. */

import {
  AlliumError,
  type FinishReason,
  type Message,
  type Metadata,
  type ModelSettings,
  type Request,
  type StoppingReason,
  type ToolContent,
  type ToolSpec,
  type Usage,
} from '../index.js';
import { type AnswerFeedback, type CallVerdict, messageOf } from '../kit/index.js';
import { flawOf } from './flaws.js';

const CASSETTE_VERSION = 1;

/** A line of a cassette after the header. */
export type Entry = ModelEntry | ToolEntry;

interface Common {
  /** Which of the recorded runs, counted from 1 in the order of their first call. */
  readonly run: number;
  readonly turn: number;
  /** The key of the normalised question. The same question has the same key in every run. */
  readonly key: string;
}

export interface ModelEntry extends Common {
  readonly type: 'model';
  readonly request: StoredRequest;
  readonly answer: StoredAnswer;
}

export interface ToolEntry extends Common {
  readonly type: 'tool';
  /** Which call of its message, from 0. */
  readonly call: number;
  readonly tool: string;
  readonly args: unknown;
  /** Progress it showed. */
  readonly updates?: readonly { readonly content: StoredContent; readonly details?: unknown }[];
  readonly outcome: StoredOutcome;
}

/** A normalised request, without what it shares with the request it comes `after`. */
export interface StoredRequest extends Partial<Omit<PlainRequest, 'messages'>> {
  /** The key of the request that this one continues: its `messages` come before these. */
  readonly after?: string;
  readonly messages: readonly PlainMessage[];
}

/** A request in full: without ids, usage and whatever else differs from run to run. */
export interface PlainRequest {
  /** `provider/id`. */
  readonly model: string;
  readonly systemPrompt: string;
  readonly tools: readonly ToolSpec[];
  readonly settings: ModelSettings;
  readonly messages: readonly PlainMessage[];
}

export type PlainMessage = Readonly<Record<string, unknown>> & Pick<Message, 'role'>;

/** A part of an answer. Text that came in pieces is stored whole, `cuts` says where the pieces ended. */
export interface StoredPart {
  readonly type: string;
  readonly cuts?: readonly number[];
  readonly [field: string]: unknown;
}

export type StoredAnswer =
  | {
      readonly content: readonly StoredPart[];
      readonly finish: FinishReason;
      readonly usage?: Partial<Usage>;
      readonly metadata?: Metadata;
      /** Who answered, if not the model that was asked. */
      readonly model?: string;
      /**
       * What guards said about its calls. They saw them whole, and couldn't say it again about what is written here.
       */
      readonly verdicts?: readonly StoredVerdict[];
    }
  /** It broke off after `content`. */
  | { readonly content?: readonly StoredPart[]; readonly error: StoredError }
  | { readonly stop: StoredStop }
  /** A guard refused it and had the model asked again. */
  | { readonly feedback: AnswerFeedback };

/** A call that was refused, or that somebody had to agree to. */
export interface StoredVerdict {
  /** Which call of the answer, from 0. */
  readonly call: number;
  readonly deny?: CallVerdict['deny'];
  readonly ask?: CallVerdict['ask'];
}

export type StoredOutcome =
  | { readonly result: StoredResult }
  | { readonly error: StoredError }
  | { readonly stop: StoredStop }
  /** It asked somebody. What happened then is the next recording of the same call. */
  | {
      readonly suspend: Question;
      /** It had asked before, and was not answered yet. */
      readonly again?: true;
    };

export type Question = Omit<Request, 'onRequest'>;

/** One block of text is written as that text. */
export type StoredContent = string | readonly ToolContent[];

export interface StoredResult {
  readonly content: StoredContent;
  readonly details?: unknown;
  readonly isError?: boolean;
  readonly terminate?: boolean;
}

export interface StoredStop {
  readonly reason: StoppingReason;
  readonly message: string;
}

/** What was thrown: an error with its fields, or any other value as `thrown`. */
export type StoredError =
  | {
      readonly name: string;
      readonly message: string;
      readonly cause?: StoredError;
      readonly [field: string]: unknown;
    }
  | { readonly thrown: unknown };

/**
 * These keys come first, in this order, and all others follow alphabetically: two recordings of the same thing are
 * the same text.
 */
const ORDER = [
  ...[
    'allium',
    'version',
    'type',
    'role',
    'run',
    'turn',
    'call',
    'key',
    'tool',
    'args',
    'updates',
    'outcome',
  ],
  ...[
    'request',
    'after',
    'model',
    'systemPrompt',
    'messages',
    'answer',
    'id',
    'name',
    'toolName',
    'description',
  ],
  ...['text', 'arguments', 'content', 'cuts', 'isError', 'finish', 'usage', 'message', 'code', 'status'],
];
const RANK = new Map(ORDER.map((key, rank) => [key, rank]));

/** A value as one line of JSON. */
export function lineOf(value: unknown): string {
  return JSON.stringify(inOrder(value));
}

/** A thrown value that isn't an error is left alone: the model reads it as JSON, key by key. */
function inOrder(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(inOrder);
  const entries = Object.entries(value).sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, item]) => [key, key === 'thrown' ? item : inOrder(item)]));
}

export function headerLine(): string {
  return lineOf({ allium: 'cassette', version: CASSETTE_VERSION });
}

function rank(key: string): number {
  return RANK.get(key) ?? ORDER.length;
}

/** An entry and where it stands. */
export interface Line {
  readonly number: number;
  readonly entry: Entry;
}

/** The entries of a cassette. `name` identifies it in errors. An empty cassette needs no header. */
export function parseCassette(lines: readonly string[], name: string): readonly Line[] {
  const invalid = (number: number, what: string, cause?: unknown) =>
    new AlliumError('CASSETTE_INVALID', `Line ${number} of ${name} ${what}. Repair it, or record again.`, {
      data: { line: number },
      ...(cause !== undefined && { cause }),
    });
  const parsed = lines.flatMap((text, index) => {
    // Also removes the byte order mark that some editors write.
    const line = text.trim();
    if (line === '') return [];
    try {
      return [{ number: index + 1, value: JSON.parse(line) as unknown }];
    } catch (error) {
      throw invalid(index + 1, `is not JSON: ${messageOf(error)}`, error);
    }
  });
  const [first, ...rest] = parsed;
  if (!first) return [];
  const header = first.value as { allium?: unknown; version?: unknown } | null;
  if (header?.allium !== 'cassette') throw invalid(first.number, 'is not the header of a cassette');
  if (header.version !== CASSETTE_VERSION)
    throw invalid(
      first.number,
      `has version ${header.version}, but this release reads only version ${CASSETTE_VERSION}`,
    );
  return rest.map(({ number, value }) => {
    const flaw = flawOf(value);
    if (flaw) throw invalid(number, flaw);
    return { number, entry: value as Entry };
  });
}
