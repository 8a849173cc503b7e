/** Questions on the terminal. What they show is made safe first. Undefined: the person does not want to answer. */
import type * as Clack from '@clack/prompts';
import type { Io } from './io.js';
import { onScreen } from './style.js';

/** Most commands ask nothing. */
const load = (): Promise<typeof Clack> => import('@clack/prompts');

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
  const options = choices as Clack.Option<T>[];
  const shown = { message: onScreen(question), options, ...(initialValue && { initialValue }) };
  const clack = await load();
  return unlessCancelled(clack, await clack.select<T>({ ...shown, ...screenOf(io) }));
}

export async function askWhichOf<T extends string>(
  io: Io,
  question: string,
  choices: readonly Choice<T>[],
  initialValues: readonly T[],
): Promise<T[] | undefined> {
  const options = choices as Clack.Option<T>[];
  const shown = { message: onScreen(question), options, initialValues: [...initialValues], required: false };
  const clack = await load();
  return unlessCancelled(clack, await clack.multiselect<T>({ ...shown, ...screenOf(io) }));
}

export interface TextQuestion {
  /** A text to start from. */
  readonly initialValue?: string;
  /** The answer if nothing is typed. */
  readonly defaultValue?: string;
  /** What is wrong with an answer. */
  readonly problem?: (answer: string) => string | undefined;
}

export async function askText(
  io: Io,
  question: string,
  { initialValue, defaultValue, problem }: TextQuestion = {},
): Promise<string | undefined> {
  const clack = await load();
  const answer = await clack.text({
    ...screenOf(io),
    message: onScreen(question),
    ...(initialValue !== undefined && { initialValue: onScreen(initialValue) }),
    ...(defaultValue !== undefined && { defaultValue }),
    ...(problem && { validate: (value: string | undefined) => problem(value ?? '') }),
  });
  return unlessCancelled(clack, answer);
}

export async function askWhether(
  io: Io,
  question: string,
  initialValue: boolean,
): Promise<boolean | undefined> {
  const clack = await load();
  const shown = { message: onScreen(question), initialValue };
  return unlessCancelled(clack, await clack.confirm({ ...screenOf(io), ...shown }));
}

/** The lines around a row of questions. */
export async function begin(io: Io, title: string): Promise<void> {
  (await load()).intro(onScreen(title), screenOf(io));
}

export async function finish(io: Io, title: string): Promise<void> {
  (await load()).outro(onScreen(title), screenOf(io));
}

function screenOf(io: Io): Pick<Clack.CommonOptions, 'input' | 'output' | 'signal'> {
  return { input: io.stdin, output: io.stderr, signal: io.signal };
}

function unlessCancelled<T>(clack: typeof Clack, answer: T): Exclude<T, symbol> | undefined {
  return clack.isCancel(answer) ? undefined : (answer as Exclude<T, symbol>);
}
