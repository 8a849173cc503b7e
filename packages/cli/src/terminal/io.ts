/** The outside world of a command: streams, environment and folder, in one object so that tests can hand in their own. */
import { addAbortSignal, type Readable, type Writable } from 'node:stream';
import { terminalJson } from 'allium';
import { onScreen, type Style, styleFor } from './style.js';

export type Input = Readable & { readonly isTTY?: boolean };
export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number };

export interface Io {
  readonly stdin: Input;
  /** The output that was asked for: answers, lists, JSON. Written with `print` and `write`, which make text safe. */
  readonly stdout: Output;
  /** Everything else: status lines, questions, errors. Written with `note` and `write`. */
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** There is a person who can be asked. */
  readonly interactive: boolean;
  /** Styles text for stdout. The result is for `print` alone: styles are marks until it is written. */
  readonly out: Style;
  /** Styles text for stderr, to be written with `note`. */
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

/** The streams of a process, for a command. `parts.stdin` is read only when it is needed: reading `process.stdin` opens it. */
export function makeIo(parts: IoParts): Io {
  const { stdout, stderr, env, cwd, signal } = parts;
  return {
    get stdin() {
      return parts.stdin;
    },
    stdout,
    stderr,
    env,
    cwd,
    interactive: stderr.isTTY === true && !isCi(env) && parts.stdin.isTTY === true,
    out: styleFor(stdout, env),
    err: styleFor(stderr, env),
    signal: signal ?? new AbortController().signal,
  };
}

/** All output goes through here, or through the screen and the prompts of this folder. */
export function write(io: Io, stream: 'stdout' | 'stderr', text: string): void {
  io[stream].write(onScreen(text));
}

/** A line of output. */
export function print(io: Io, text = ''): void {
  write(io, 'stdout', `${text}\n`);
}

/** A line on stderr. */
export function note(io: Io, text = ''): void {
  write(io, 'stderr', `${text}\n`);
}

/** Indented, for one answer; on one line, for one of many. */
export function printJson(io: Io, value: unknown, indent: 0 | 2 = 2): void {
  print(io, terminalJson(JSON.stringify(value, null, indent)));
}

/** Everything that comes in on stdin, as text. Ctrl-C ends the wait with an `AbortError`. */
export async function readAll({ stdin, signal }: Pick<Io, 'stdin' | 'signal'>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of addAbortSignal(signal, stdin))
    chunks.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
  return Buffer.concat(chunks).toString('utf8');
}

function isCi(env: Io['env']): boolean {
  return env.CI !== undefined && env.CI !== '' && env.CI !== 'false' && env.CI !== '0';
}
