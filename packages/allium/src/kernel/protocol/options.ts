/** Checks of options, shared by factories: each message names the option, what it takes and what it was given. */
import { invalidOption, isOptions } from '../lib/errors.js';
import { checkKeys } from '../lib/shapes.js';

/**
 * Checks that the options of a factory are an object with no other keys than these.
 *
 * @example
 * checkOptions('myStore', options, ['url', 'timeoutMs']);
 */
export function checkOptions(factory: string, options: unknown, allowed: readonly string[]): void {
  checkKeys(`${factory}()`, options, allowed);
}

/** What the options of every middleware have. */
export interface NamedOptions {
  /** Its name. State is kept under it, so two of a kind in one list need different names. @default its kind */
  readonly name?: string;
}

/**
 * Checks the options of a middleware: an object with no other keys than these and `name`, which is non-empty text.
 *
 * @example
 * checkNamed('hideNumbers', options, ['digits']);
 */
export function checkNamed(factory: string, options: unknown, allowed: readonly string[]): void {
  checkOptions(factory, options, [...allowed, 'name']);
  const { name } = options as NamedOptions;
  if (name !== undefined && (typeof name !== 'string' || name === ''))
    throw invalidOption('name', 'non-empty text', name);
}

export function checkRecord(option: string, value: unknown): void {
  if (!isOptions(value)) throw invalidOption(option, 'an object', value);
}

/** Checks that an option is text, which may be empty. */
export function checkText(option: string, value: unknown): void {
  if (typeof value !== 'string') throw invalidOption(option, 'text', value);
}

export function checkNames(option: string, value: unknown): void {
  if (!isListOf(value, (name) => typeof name === 'string'))
    throw invalidOption(option, 'a list of names', value);
}

export function checkList(option: string, value: unknown): asserts value is readonly unknown[] {
  if (!Array.isArray(value)) throw invalidOption(option, 'a list', value);
}

/** Is it a list of nothing else? A hole in a list is something else, too. */
export function isListOf<T>(value: unknown, fits: (item: T) => boolean): value is readonly T[] {
  if (!Array.isArray(value)) return false;
  for (let i = 0; i < value.length; i++) if (!fits(value[i])) return false;
  return true;
}

/** How each option is checked, by its name. */
export type Checks<Name extends string = string> = Readonly<
  Record<Name, (option: string, value: unknown) => void>
>;

/** Checks the options that were given. Those without a check are somebody else's. */
export function checkEach(options: object, checks: Checks): void {
  for (const [option, value] of Object.entries(options))
    if (value !== undefined && Object.hasOwn(checks, option)) checks[option]!(option, value);
}

/** Checks that an option is an integer from `from` up to and including `to`. */
export function checkInteger(
  option: string,
  value: unknown,
  from: number,
  to = Number.MAX_SAFE_INTEGER,
): void {
  if (Number.isInteger(value) && (value as number) >= from && (value as number) <= to) return;
  throw invalidOption(
    option,
    to === Number.MAX_SAFE_INTEGER ? `an integer ≥ ${from}` : `an integer from ${from} to ${to}`,
    value,
  );
}

/** A class of errors: it stands for its instances, those of its subclasses included. */
export type ErrorClass = abstract new (...args: any[]) => unknown;

/** Makes a function of an option that says which errors are meant, with a function or with a class of errors. */
export function errorTest<C, Answer extends boolean | Promise<boolean>>(
  option: string,
  value: ((error: unknown, ctx: C) => Answer) | ErrorClass,
): (error: unknown, ctx: C) => Answer | boolean {
  if (typeof value !== 'function') throw invalidOption(option, 'a function or a class of errors', value);
  return isClass(value) ? (error) => error instanceof value : (value as (error: unknown, ctx: C) => Answer);
}

/** Errors may be made by functions of an older style; anything else that is no function to call says so itself. */
function isClass(value: object): value is ErrorClass {
  const { prototype } = value as { readonly prototype?: unknown };
  if (prototype === Error.prototype || prototype instanceof Error) return true;
  return /^class\b/.test(Function.prototype.toString.call(value));
}

/** Checks that an option is a number from `from` up to and including `to`. Infinity passes only where `to` is Infinity. */
export function checkNumber(option: string, value: unknown, from: number, to = Number.MAX_VALUE): void {
  if (typeof value === 'number' && value >= from && value <= to) return;
  throw invalidOption(
    option,
    to === Number.MAX_VALUE
      ? `a finite number ≥ ${from}`
      : to > Number.MAX_VALUE
        ? `a number ≥ ${from}`
        : `a number from ${from} to ${to}`,
    value,
  );
}

/** How long something may take, where waiting without end is meant by Infinity. */
export function checkTimeout(option: string, value: unknown): void {
  checkNumber(option, value, 0, Number.POSITIVE_INFINITY);
}

/** Checks that an option is one of these texts. */
export function checkOneOf(option: string, value: unknown, choices: readonly string[]): void {
  if (choices.includes(value as string)) return;
  throw invalidOption(option, choices.map((choice) => `'${choice}'`).join(' or '), value);
}

/** Checks that an option is a function. */
export function checkFunction(option: string, value: unknown): void {
  if (typeof value !== 'function') throw invalidOption(option, 'a function', value);
}

/** Checks that an option is an object with these methods. */
export function checkMethods(option: string, value: unknown, methods: readonly string[]): void {
  const object = (typeof value === 'object' || typeof value === 'function') && value !== null;
  if (object && methods.every((method) => typeof (value as Record<string, unknown>)[method] === 'function'))
    return;
  throw invalidOption(option, `an object with ${methods.map((method) => `${method}()`).join(', ')}`, value);
}
