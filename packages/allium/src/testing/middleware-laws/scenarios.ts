/** The conversations in which the laws are tried, and their tools. */

import {
  type StandardSchema,
  type Tool,
  tool,
  toolResult,
  type UserMessage,
  userMessage,
} from '../../index.js';
import { deepFreeze } from '../../kit/index.js';
import { type Answer, chunks, failWith, hang, text, toolCalls } from '../scripted-model.js';

/** A conversation: what the user says, and what the model answers turn by turn. */
export interface Scenario {
  /** Names the conversation in error messages. */
  readonly name: string;
  /** What the user says. @default 'Hello.' */
  readonly input?: string;
  /** What the model answers in turn 1, 2, …; afterwards it says "Done.". The same turn gets the same answer each time. */
  readonly answers: readonly Answer[];
  /** Tools in addition to those of the kit, which are named `kit_…`. */
  readonly tools?: readonly Tool[];
}

/** A conversation in which the kit itself does something. */
export interface KitScenario extends Scenario {
  /** What the user says, if that is more than text. */
  readonly message?: UserMessage;
  /** A layer inside the middleware stops the run instead of calling the model. */
  readonly stopsAtModel?: boolean;
  /** The run is aborted before it begins. */
  readonly abortsFirst?: boolean;
}

export function inputOf({ message, input = 'Hello.' }: KitScenario): UserMessage {
  return message ?? userMessage(input);
}

const thinking = { type: 'thinking', text: 'Two numbers. I add them up.' } as const;
const image = {
  type: 'image',
  data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  mimeType: 'image/png',
} as const;
const file = { type: 'file', data: 'QW4gb25pb24u', mimeType: 'text/plain', name: 'onion.txt' } as const;
const add = (a: number, b: number, id?: string) => ({ name: 'kit_add', args: { a, b }, ...(id && { id }) });

/** Nothing goes wrong here and there is nothing to find, so a middleware that acts only on trouble does nothing. */
export const CALM: readonly KitScenario[] = deepFreeze([
  { name: 'an answer of text', answers: [text('Good morning. How are you?')] },
  { name: 'an empty answer', answers: [text('')] },
  {
    name: 'an answer in pieces, with thinking',
    answers: [chunks(thinking, 'tick', 'Good ', 'morning', 'tick', '. How are you?')],
  },
  { name: 'one tool call', answers: [toolCalls({ ...add(1, 2), text: 'Let me see.' }), text('Three.')] },
  {
    name: 'everything that messages and results can hold',
    message: userMessage(
      [{ type: 'text', text: 'What is on this picture?', metadata: { language: 'en' } }, image, file],
      { from: 'kit', nested: { list: [1, 2] } },
    ),
    answers: [
      chunks(
        { type: 'thinking', text: 'A picture.', signature: 'seal', metadata: { step: 1 } },
        { type: 'text', text: 'Let me look.', metadata: { language: 'en' } },
        { type: 'provider', kind: 'source', value: { url: 'https://example.com/onions' } },
        file,
        { type: 'tool-call', id: 'a', name: 'kit_show', arguments: '{}', metadata: { seal: 'b' } },
        { type: 'tool-call', id: 'b', name: 'kit_sorry', arguments: '{}' },
        { type: 'finish', reason: 'tool-calls', metadata: { id: 'answer' } },
      ),
      toolCalls({ name: 'kit_last' }),
      text('Never.'),
    ],
  },
  {
    name: 'three tool calls at once, then another',
    answers: [
      toolCalls(add(1, 2, 'a'), { name: 'kit_slow', args: { value: 'slow' }, id: 'b' }, add(3, 4, 'c')),
      toolCalls(add(3, 7, 'd')),
      text('Ten.'),
    ],
  },
]);

/** Calls of one batch run at once. A middleware that lets them in one by one makes these two wait for each other in vain. */
export const MEETING: KitScenario = deepFreeze({
  name: 'two tool calls that wait for each other',
  answers: [toolCalls({ name: 'kit_meet', id: 'a' }, { name: 'kit_meet', id: 'b' }), text('They met.')],
});

/** Enough turns for what each of them leaves behind to add up. */
export const MANY_TURNS: KitScenario = deepFreeze({
  name: 'eight turns',
  answers: Array.from({ length: 7 }, (_, i) => toolCalls(add(i, 1))),
});

/** Calls that fail in every way a call can. */
export const TROUBLE: readonly Scenario[] = deepFreeze([
  { name: 'a tool that fails', answers: [toolCalls({ name: 'kit_fail' }), text('It failed.')] },
  {
    name: 'calls that succeed, fail, are refused, unknown and malformed, all at once',
    answers: [
      toolCalls(
        add(1, 2, 'a'),
        { name: 'kit_fail', id: 'b' },
        { name: 'kit_refused', id: 'c' },
        { name: 'kit_unknown', id: 'd' },
        { name: 'kit_add', args: '{"a":', id: 'e' },
        { name: 'kit_add', args: { a: 'one' }, id: 'f' },
        { name: 'kit_slow', args: { value: 'g' }, id: 'g' },
      ),
      text('Some of it failed.'),
    ],
  },
  { name: 'the same call id twice', answers: [toolCalls(add(1, 2, 'x'), add(3, 4, 'x')), text('Done.')] },
]);

/** Conversations with a long answer, to cut into pieces. */
export const WORDY: readonly Scenario[] = deepFreeze([
  {
    name: 'a long answer with thinking and tool calls',
    answers: [
      chunks(
        thinking,
        'Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Hello, Otto! 🧅👩‍👩‍👧 Line one.\nLine two: "a"\t{"b": 1}.',
        { type: 'tool-call', id: 'a', name: 'kit_add', arguments: '{"a": 12, "b": 30}' },
        { type: 'tool-call', id: 'b', name: 'kit_slow', arguments: '{"value": "grüß 🧅"}' },
      ),
      text('The sum is 42. Anything else?'),
    ],
  },
]);

export interface KitToolsOptions {
  /** Called for every execution. */
  readonly onCall: () => void;
  readonly tick: () => Promise<void>;
  /** Waits until the signal aborts. */
  readonly hang: (signal: AbortSignal) => Promise<void>;
  /** Waits for another call that waits too. */
  readonly meet: () => Promise<string>;
  readonly abort: () => void;
  /** Freezes the errors of the tools. */
  readonly freeze: boolean;
}

/** The tools of the kit. */
export function kitTools({
  onCall,
  tick,
  hang: wait,
  meet,
  abort,
  freeze,
}: KitToolsOptions): readonly Tool[] {
  const make = (name: string, execute: Tool['execute'], input = anything): Tool =>
    tool({
      name,
      description: `${name} of the test kit.`,
      input,
      execute(args, ctx) {
        onCall();
        return execute(args, ctx);
      },
    });
  const fail = (error: Error): never => {
    throw freeze ? Object.freeze(error) : error;
  };
  return [
    make('kit_add', ({ a, b }) => a + b, twoNumbers),
    make('kit_slow', async ({ value }) => {
      for (let i = 0; i < 3; i++) await tick();
      return value;
    }),
    make('kit_meet', meet),
    make('kit_show', () =>
      toolResult({ content: [{ type: 'text', text: 'An onion.' }, image], details: { rows: [1, 2] } }),
    ),
    make('kit_sorry', () => toolResult({ content: 'Not today.', isError: true })),
    make('kit_last', () => toolResult({ content: 'That was all.', terminate: true })),
    make('kit_fail', () => fail(Object.assign(new Error('kit_fail fails.'), { status: 400 }))),
    make('kit_overload', () => fail(transient())),
    make('kit_refused', () => 'not reached'),
    make('kit_hang', async (_, ctx) => {
      await wait(ctx.signal);
      throw ctx.signal.reason;
    }),
    make('kit_stop', (_, ctx) => ctx.stop('stopped', 'kit_stop')),
    make('kit_suspend', async (_, ctx) => (await ctx.suspend({ title: 'May I?' })).type),
    make('kit_abort', () => {
      abort();
      return 'aborted';
    }),
  ];
}

/** An error that is worth a retry. */
export function transient(): Error {
  return Object.assign(new Error('Overloaded.'), { status: 503, code: 'ECONNRESET' });
}

/**
 * Situations to abort a run in. `kit_abort` does it by itself, the others wait to be aborted. They are made anew each
 * time: nobody is given an error that somebody else has written on.
 */
export const interruptions = (): readonly KitScenario[] => [
  { name: 'before the run begins', answers: [text('Never.')], abortsFirst: true },
  { name: 'before the first piece of an answer', answers: [hang()] },
  { name: 'in the middle of an answer', answers: [hang('Good ', 'morning')] },
  { name: 'while a tool runs', answers: [toolCalls({ name: 'kit_hang' }), text('Never.')] },
  {
    name: 'while one tool of three runs',
    answers: [
      toolCalls(add(1, 2, 'a'), { name: 'kit_hang', id: 'b' }, { name: 'kit_fail', id: 'c' }),
      text('Never.'),
    ],
  },
  { name: 'in a tool that then ends well', answers: [toolCalls({ name: 'kit_abort' }), text('Never.')] },
  { name: 'after a model call that failed', answers: [failWith(transient(), 'Good ')] },
  { name: 'after a tool call that failed', answers: [toolCalls({ name: 'kit_overload' }), hang('It ')] },
];

/** The input of a tool that takes any object. */
export const anything = schema('object', () => true);
const twoNumbers = schema(
  '{ a: number, b: number }',
  ({ a, b }) => typeof a === 'number' && typeof b === 'number',
);

// biome-ignore lint/suspicious/noExplicitAny: only the scenario knows what its tool takes.
function schema(expected: string, fits: (value: any) => boolean): StandardSchema<any> {
  return {
    '~standard': {
      version: 1,
      vendor: 'allium',
      validate: (value) =>
        typeof value === 'object' && value !== null && fits(value)
          ? { value }
          : { issues: [{ message: `Expected ${expected}.` }] },
      jsonSchema: { input: () => ({ type: 'object' }) },
    },
  };
}
