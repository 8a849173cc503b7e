/** Checks of single options, in the words of `kinds`. Each throws `INVALID_OPTION`. */
import { invalidOption, isThenable } from '../kernel/lib/errors.js';
import * as kinds from '../kernel/lib/kinds.js';
import { checkKeys, checkValue } from '../kernel/lib/shapes.js';

/**
 * Checks that the options of a factory are an object with no other keys than these.
 *
 * @example
 * checkOptions('myStore', options, ['url', 'timeoutMs']);
 */
export function checkOptions(factory: string, options: unknown, allowed: readonly string[]): void {
  checkKeys(`${factory}()`, options, allowed);
}

/** The option that every middleware has. */
export interface NamedOptions {
  /** Its name in logs, plans and state. Give two of a kind in one list different names. @default its kind */
  readonly name?: string;
}

/** Checks that an option is text, which may be empty. */
export function checkText(option: string, value: unknown): void {
  checkValue(option, kinds.text, value);
}

/** Checks that an option is an integer from `from` up to and including `to`. */
export function checkInteger(option: string, value: unknown, from: number, to?: number): void {
  checkValue(option, kinds.integer(from, to), value);
}

/** Checks that an option is a number from `from` up to and including `to`. Infinity passes only where `to` is Infinity. */
export function checkNumber(option: string, value: unknown, from: number, to?: number): void {
  checkValue(option, kinds.number(from, to), value);
}

/** Checks that an option is one of these texts. */
export function checkOneOf(option: string, value: unknown, choices: readonly string[]): void {
  checkValue(option, kinds.oneOf(...choices), value);
}

/** Checks that an option is a function. */
export function checkFunction(option: string, value: unknown): void {
  checkValue(option, kinds.func(), value);
}

/** Checks that an option is an object with these methods. */
export function checkMethods(option: string, value: unknown, methods: readonly string[]): void {
  checkValue(option, kinds.methods<Record<string, () => void>>(...methods), value);
}

/** A class of errors. It stands for its instances, including those of subclasses. */
export type ErrorClass = abstract new (...args: never[]) => unknown;

/** Makes a function from an option that selects errors by a function or by a class of errors. */
export function errorTest<C, Answer extends boolean | Promise<boolean>>(
  option: string,
  value: ((error: unknown, ctx: C) => Answer) | ErrorClass,
): (error: unknown, ctx: C) => Answer | boolean {
  if (typeof value !== 'function') throw invalidOption(option, 'a function or a class of errors', value);
  return isClass(value) ? (error) => error instanceof value : (value as (error: unknown, ctx: C) => Answer);
}

/**
 * Makes a function from an option that says yes or no. A promise would always count as yes, so one is refused.
 *
 * @example
 * const ignores = yesOrNo('ignore', options.ignore);
 */
export function yesOrNo<Args extends readonly unknown[]>(
  option: string,
  ask: (...args: Args) => unknown,
): (...args: Args) => boolean {
  return (...args) => {
    const answer = ask(...args);
    if (isThenable(answer)) throw invalidOption(`${option}()`, 'a function that answers at once', answer);
    return Boolean(answer);
  };
}

/** Error classes may be functions in the old style. Any other class throws when it is called. */
function isClass(value: object): value is ErrorClass {
  const { prototype } = value as { readonly prototype?: unknown };
  if (prototype === Error.prototype || prototype instanceof Error) return true;
  return /^class\b/.test(Function.prototype.toString.call(value));
}
