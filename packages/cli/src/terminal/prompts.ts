/** Questions on the terminal. What they show is made safe first; undefined: the person does not want to answer. */
import * as clack from '@clack/prompts';
import type { Io } from './io.js';
import { onScreen } from './style.js';

export interface Choice<T> {
  readonly value: T;
  readonly label: string;
  readonly hint?: string;
}

export async function askWhich<T extends string>(
  io: Io,
  question: string,
  choices: readonly Choice<T>[],
  initialValue?: T,
): Promise<T | undefined> {
  const options = choices as clack.Option<T>[];
  const shown = { message: onScreen(question), options, ...(initialValue && { initialValue }) };
  return unlessCancelled(await clack.select<T>({ ...shown, ...screenOf(io) }));
}

export async function askWhichOf<T extends string>(
  io: Io,
  question: string,
  choices: readonly Choice<T>[],
  initialValues: readonly T[],
): Promise<T[] | undefined> {
  const options = choices as clack.Option<T>[];
  const shown = { message: onScreen(question), options, initialValues: [...initialValues], required: false };
  return unlessCancelled(await clack.multiselect<T>({ ...shown, ...screenOf(io) }));
}

export interface TextQuestion {
  /** To be changed. */
  readonly initialValue?: string;
  /** What nothing stands for. */
  readonly defaultValue?: string;
  /** What is wrong with an answer. */
  readonly problem?: (answer: string) => string | undefined;
}

export async function askText(
  io: Io,
  question: string,
  { initialValue, defaultValue, problem }: TextQuestion = {},
): Promise<string | undefined> {
  const answer = await clack.text({
    ...screenOf(io),
    message: onScreen(question),
    ...(initialValue !== undefined && { initialValue: onScreen(initialValue) }),
    ...(defaultValue !== undefined && { defaultValue }),
    ...(problem && { validate: (value: string | undefined) => problem(value ?? '') }),
  });
  return unlessCancelled(answer);
}

export async function askWhether(
  io: Io,
  question: string,
  initialValue: boolean,
): Promise<boolean | undefined> {
  return unlessCancelled(await clack.confirm({ ...screenOf(io), message: onScreen(question), initialValue }));
}

/** The lines around a row of questions. */
export function begin(io: Io, title: string): void {
  clack.intro(onScreen(title), screenOf(io));
}

export function finish(io: Io, title: string): void {
  clack.outro(onScreen(title), screenOf(io));
}

function screenOf(io: Io): Pick<clack.CommonOptions, 'input' | 'output' | 'signal'> {
  return { input: io.stdin, output: io.stderr, signal: io.signal };
}

function unlessCancelled<T>(answer: T): Exclude<T, symbol> | undefined {
  return clack.isCancel(answer) ? undefined : (answer as Exclude<T, symbol>);
}
