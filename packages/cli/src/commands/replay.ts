/** `allium replay`: plays a recorded run again, without calling models or tools. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Message, type Model, memoryStore, modelName, type Price } from 'allium';
import { UsageError } from '../outcome.js';
import { type PlayOptions, play } from '../play.js';
import {
  type AddCommand,
  openConfig,
  positive,
  programName,
  quoted,
  type Shell,
  withAgent,
} from '../shell.js';

interface Options extends PlayOptions {
  readonly run: number;
}

export const addReplay: AddCommand = (program, shell) => {
  program
    .command('replay')
    .summary('play a recorded run again, without calling models or tools')
    .description(
      'Plays a cassette that `allium run --record` wrote, through the chain of the config. Models and tools are not ' +
        'called and nothing is kept. If the chain asks something that was not recorded, the run fails and shows the difference.',
    )
    .argument('<cassette>', 'the file')
    .option('--run <number>', 'which of the recorded runs, counting from 1', positive, 1)
    .option('-q, --quiet', 'print only the answer')
    .option('-y, --yes', 'approve every tool call without asking')
    .option('--json', 'print events, one JSON object per line')
    .action((cassette: string, options: Options) => playAgain(shell, cassette, options));
};

async function playAgain(shell: Shell, cassette: string, options: Options): Promise<void> {
  const lines = linesOf(shell, cassette);
  const { model, messages } = questionOf(lines, options.run, cassette);
  const price = await priceOf(shell, model);
  const { replay } = await import('allium/middleware/replay');
  const overrides = {
    model: standIn(model, price),
    store: memoryStore(),
    middleware: [replay({ from: lines })],
  };
  await withAgent(shell, overrides, async ({ agent }) => {
    const forgets = 'a replay keeps nothing. Pass --yes.';
    await play(shell, agent, { ...options, forgets }, (run) => agent.stream(messages, run));
  });
}

function linesOf({ io }: Shell, named: string): string[] {
  try {
    return readFileSync(resolve(io.cwd, named), 'utf8')
      .split('\n')
      .filter((line) => line.trim() !== '');
  } catch {
    throw new UsageError(
      `There is no cassette "${named}". Write one: ${programName(io)} run --record ${quoted(named)} "…"`,
    );
  }
}

interface Question {
  readonly model: string;
  readonly messages: readonly Message[];
}

/** What the recorded run was asked: the messages of its first request. */
export function questionOf(lines: readonly string[], run: number, named: string): Question {
  const runs = new Set<number>();
  for (const line of lines) {
    const { type, run: number, request } = entryIn(line);
    if (type !== 'model' || typeof number !== 'number') continue;
    runs.add(number);
    const { model, messages } = request ?? {};
    if (number === run && typeof model === 'string' && areMessages(messages))
      return { model, messages: withIds(messages) };
  }
  const is =
    runs.size === 0
      ? 'is no cassette, or one without a model call'
      : `has no run ${run} that begins with a model call`;
  const instead = runs.size === 0 ? '' : ` It has: ${[...runs].join(', ')}.`;
  throw new UsageError(`"${named}" ${is}.${instead}`);
}

interface RecordedCall {
  readonly type?: unknown;
  readonly run?: unknown;
  readonly request?: { readonly model?: unknown; readonly messages?: unknown };
}

/** Nothing for a damaged line: the replay itself says which one that is. */
function entryIn(line: string): RecordedCall {
  try {
    return Object(JSON.parse(line));
  } catch {
    return {};
  }
}

function areMessages(value: unknown): value is Record<string, unknown>[] {
  return Array.isArray(value) && value.every((message) => Array.isArray(message?.content));
}

/** Recorded messages have no ids; calls and their results find each other by place. */
function withIds(messages: readonly Record<string, unknown>[]): Message[] {
  let made = 0;
  const open: string[] = [];
  return messages.map((message) => {
    if (message.role === 'tool')
      return { id: '', ...message, toolCallId: open.shift() ?? '' } as unknown as Message;
    const content = (message.content as readonly { type: string }[]).map((part) => {
      if (part.type !== 'tool-call') return part;
      const id = `recorded_${++made}`;
      open.push(id);
      return { ...part, id };
    });
    const finish =
      message.role === 'assistant' ? { stopReason: open.length > 0 ? 'tool-calls' : 'stop' } : {};
    return { id: '', ...finish, ...message, content } as unknown as Message;
  });
}

/**
 * So that limits in dollars work as before. A model that can't be made here has no price, but isn't needed either.
 */
async function priceOf(shell: Shell, name: string): Promise<Price | undefined> {
  const loaded = await openConfig(shell);
  const { resolveConfigModel } = await import('@allium/config');
  const model = await resolveConfigModel(loaded).catch(() => undefined);
  return model && modelName(model) === name ? model.price : undefined;
}

/** Has the recorded name, so that questions have the same keys. Its answers come from the cassette. */
function standIn(name: string, price: Price | undefined): Model {
  const slash = name.indexOf('/');
  return {
    provider: name.slice(0, slash),
    id: name.slice(slash + 1),
    ...(price && { price }),
    // biome-ignore lint/correctness/useYield: it never answers, the cassette does
    async *stream() {
      throw new Error(`The model ${name} is not called in a replay.`);
    },
  };
}
