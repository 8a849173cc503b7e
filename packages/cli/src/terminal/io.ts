/** The outside world of a command: streams, environment and folder, in one object so that tests can hand in their own. */
import { addAbortSignal, type Readable, type Writable } from 'node:stream';
import { type Style, styleFor } from './style.js';

export type Input = Readable & { readonly isTTY?: boolean };
export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number };

export interface Io {
  readonly stdin: Input;
  /** What was asked for: answers, lists, JSON. */
  readonly stdout: Output;
  /** What happens on the way: status lines, questions, errors. */
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Somebody sits there and can be asked. */
  readonly interactive: boolean;
  /** Styles text for stdout. */
  readonly out: Style;
  /** Styles text for stderr. */
  readonly err: Style;
  /** Aborts when the process is told to end (Ctrl-C). */
  readonly signal: AbortSignal;
}

export interface IoParts {
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly signal?: AbortSignal;
}

export function makeIo({ stdin, stdout, stderr, env, cwd, signal }: IoParts): Io {
  return {
    stdin,
    stdout,
    stderr,
    env,
    cwd,
    interactive: stdin.isTTY === true && stderr.isTTY === true && !isCi(env),
    out: styleFor(stdout, env),
    err: styleFor(stderr, env),
    signal: signal ?? new AbortController().signal,
  };
}

/** A line of what was asked for. */
export function print(io: Io, text = ''): void {
  io.stdout.write(`${text}\n`);
}

/** A line about it. */
export function note(io: Io, text = ''): void {
  io.stderr.write(`${text}\n`);
}

export function printJson(io: Io, value: unknown): void {
  print(io, JSON.stringify(value, null, 2));
}

/** Everything that comes in on stdin, as text. Whoever presses Ctrl-C meanwhile need not wait: that is an `AbortError`. */
export async function readAll({ stdin, signal }: Pick<Io, 'stdin' | 'signal'>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of addAbortSignal(signal, stdin))
    chunks.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
  return Buffer.concat(chunks).toString('utf8');
}

function isCi(env: Io['env']): boolean {
  return env.CI !== undefined && env.CI !== '' && env.CI !== 'false' && env.CI !== '0';
}
