/** Options: checks for factories. Each throws `INVALID_OPTION` with the option, what it takes and what it was given. */

import { flatten } from '../compose/compose.js';
import { isPlainObject } from '../kernel/lib/errors.js';
import type { Foreign } from '../kernel/lib/foreign-names.js';
import { checkFields as check, type Fields, type Kind, type TypeOf } from '../kernel/lib/shapes.js';
import type { Middleware, MiddlewareList } from '../kernel/protocol/middleware.js';
import { foreignOptions } from './foreign-options.js';
import { nonEmptyText, withDefault } from './kinds.js';

export { checkMembers } from '../compose/check-middleware.js';
export {
  closestName,
  invalidOption,
  shown as describeValue,
} from '../kernel/lib/errors.js';
export {
  checkKeys,
  checkValue,
  type Fields,
  type Kind,
  type OptionsOf,
  type TypeOf,
} from '../kernel/lib/shapes.js';
/** Kinds of values, for the fields of options. */
export * as kinds from './kinds.js';
export {
  checkFunction,
  checkInteger,
  checkMethods,
  checkNumber,
  checkOneOf,
  checkOptions,
  checkText,
  type ErrorClass,
  errorTest,
  type NamedOptions,
  yesOrNo,
} from './option-checks.js';

/**
 * Checks an object of options: every field must be listed here and be of that kind. `what`: the function that takes the
 * options. `foreign`: names that other libraries use, by default those of the usual options of middleware.
 *
 * @example
 * checkFields('hideNumbers()', { digits: kinds.integer(1, 9), name: kinds.nonEmptyText }, options);
 */
export function checkFields(
  what: string,
  fields: Fields,
  options: unknown,
  foreign: Foreign = foreignOptions(fields),
): void {
  check(what, fields, options, foreign);
}

/** The options of a factory as they apply: checked, with defaults filled in. */
export type Settings<F extends Fields> = {
  readonly [Name in keyof F]: F[Name] extends { readonly required: true } | { readonly default: unknown }
    ? TypeOf<F[Name]>
    : TypeOf<F[Name]> | undefined;
} & {
  /** The same as data, for `madeWith` of the middleware, without its name and secrets. */
  readonly madeWith: Readonly<Record<string, unknown>>;
};

/**
 * Checks the options of a factory against its fields and fills in defaults.
 *
 * @example
 * const { digits, name, madeWith } = readOptions('hideNumbers', OPTIONS, options);
 */
export function readOptions<F extends Fields>(factory: string, fields: F, options: unknown): Settings<F> {
  checkFields(`${factory}()`, fields, options);
  const settings: Record<string, unknown> = {};
  const madeWith: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(fields)) {
    const given = (options as Record<string, unknown>)[name];
    const value = given === undefined ? field.default : given;
    if (value === undefined) continue;
    settings[name] = value;
    // A default that is code says nothing about this instance.
    const shows = name !== 'name' && (given !== undefined || isData(value));
    if (shows) madeWith[name] = field.secret ? SECRET : value;
  }
  return { ...settings, madeWith: Object.freeze(madeWith) } as Settings<F>;
}

const SECRET = Symbol('secret');

function isData(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return typeof value !== 'function';
  if (Array.isArray(value)) return value.every(isData);
  return isPlainObject(value) && Object.values(value).every(isData);
}

/**
 * The field `name`, which every middleware takes, with the default for it.
 *
 * @example
 * const OPTIONS = { digits: kinds.integer(1, 9), ...named('hide-numbers') } satisfies Fields;
 */
export function named(kind: string): {
  /** Its name in logs, plans and state. Give two of a kind in one list different names. @default its kind */
  readonly name: Kind<string> & { readonly default: string };
} {
  return { name: withDefault(nonEmptyText, kind) };
}

/**
 * The middleware of nested lists and pipelines, in order. Throws what an agent would. `option`: the name of the list
 * in errors.
 */
export function flattenMiddleware(list: MiddlewareList, option = 'middleware'): Middleware[] {
  return flatten(list, option);
}
