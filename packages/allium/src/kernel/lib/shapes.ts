/** Checks values against kinds, and objects against shapes, which give a kind for each field. `kinds.ts` has the kinds. */
import { AlliumError, closestName, invalidOption, isOptions } from './errors.js';
import { type Foreign, foreignName } from './foreign-names.js';

/** A kind of value. It is plain data: spread one to change its words. */
export interface Kind<out T = unknown> {
  /** Completes "Expected `x` to be …". */
  readonly expected: string;
  /** Never throws, whatever it's given. */
  readonly fits: (value: any) => boolean;
  /** Names what a wrong value lacks, for "got … without …". */
  readonly lacks?: (value: any) => readonly string[];
  /** Finds what is wrong inside a value that fits otherwise. `option`: the path of the value. */
  readonly inside?: (value: any, option: string) => AlliumError | undefined;
  /** Its JSON Schema, for editors and config files. `CODE` stands for code. */
  readonly schema?: Readonly<Record<string, unknown>>;
  /** Fields are optional unless this is set. */
  readonly required?: boolean;
  /** The default of the field. */
  readonly default?: T;
  /** Its value is never shown, logged or stored. */
  readonly secret?: boolean;
  /** Its TypeScript type. Only the type checker reads this. */
  readonly '~type'?: T;
}

/** The fields of an object, with the kind of each. */
export type Fields = Readonly<Record<string, Kind>>;

/** The TypeScript type of the values of a kind. */
export type TypeOf<K extends Kind> = K extends Kind<infer T> ? T : never;

/** The TypeScript type of an object with these fields. Comments on the fields are kept. */
export type OptionsOf<F extends Fields> = {
  readonly [Name in keyof F as F[Name] extends { readonly required: true } ? Name : never]: TypeOf<F[Name]>;
} & {
  readonly [Name in keyof F as F[Name] extends { readonly required: true } ? never : Name]?: TypeOf<F[Name]>;
};

/** The `INVALID_OPTION` error for a value that is not of this kind; undefined if it is. */
export function wrongValue(option: string, kind: Kind, value: unknown): AlliumError | undefined {
  if (kind.fits(value)) return kind.inside?.(value, option);
  return invalidOption(option, kind.expected, kind.secret ? typeName(value) : value, kind.lacks?.(value));
}

function typeName(value: unknown): string {
  return Array.isArray(value) ? 'list' : typeof value;
}

/** Is the value of this kind, all the way down? */
export function isOf(kind: Kind, value: unknown): boolean {
  return wrongValue('', kind, value) === undefined;
}

/** Like `wrongValue`, for an object with these fields and no others. `prefix`: goes before the names of its fields. */
export function wrongField(
  what: string,
  fields: Fields,
  options: unknown,
  foreign?: Foreign,
  prefix = '',
): AlliumError | undefined {
  const known =
    isOptions(options) && Object.keys(options as object).every((name) => Object.hasOwn(fields, name));
  return known
    ? wrongFieldValue(fields, options as object, prefix)
    : wrongKey(what, options, Object.keys(fields), foreign);
}

/** The same, but ignores other fields. */
export function wrongFieldValue(fields: Fields, options: object, prefix = ''): AlliumError | undefined {
  for (const name in fields) {
    const value = (options as Record<string, unknown>)[name];
    if (value === undefined && !fields[name]!.required) continue;
    const wrong = wrongValue(prefix + name, fields[name]!, value);
    if (wrong) return wrong;
  }
  return undefined;
}

function wrongKey(
  what: string,
  value: unknown,
  allowed: readonly string[],
  foreign: Foreign = {},
): AlliumError | undefined {
  const names = allowed.join(', ');
  if (!isOptions(value))
    return invalidOption('options', names ? `an object with ${names} for ${what}` : `{} for ${what}`, value);
  const key = Object.keys(value as object).find((name) => !allowed.includes(name));
  if (key === undefined) return undefined;
  const here = foreignName(foreign, key);
  const near = closestName(key, allowed);
  const hint = here ? ` Here that is \`${here}\`.` : near ? ` Did you mean \`${near}\`?` : '';
  // A long list would hide the hint.
  const list =
    hint !== '' && allowed.length > SHORT_LIST ? '' : ` It takes${names ? `: ${names}` : ' none'}.`;
  return new AlliumError('INVALID_OPTION', `Unknown option \`${key}\` of ${what}.${hint}${list}`, {
    data: { option: key, allowed },
  });
}

const SHORT_LIST = 20;

/**
 * Checks a value against a kind.
 *
 * @example
 * checkValue('attempts', kinds.integer(1, 100), attempts);
 */
export function checkValue(option: string, kind: Kind, value: unknown): void {
  const wrong = wrongValue(option, kind, value);
  if (wrong) throw wrong;
}

/**
 * Checks an object of options: every field must be listed here and be of that kind. `what`: the function that takes the
 * options. `foreign`: names that other libraries use.
 */
export function checkFields(what: string, fields: Fields, options: unknown, foreign?: Foreign): void {
  const wrong = wrongField(what, fields, options, foreign);
  if (wrong) throw wrong;
}

/**
 * Checks only the names in an object: throws if it isn't an object or has a name that isn't in `allowed`, and suggests the
 * name that was probably meant. `foreign`: names that other libraries use.
 */
export function checkKeys(what: string, value: unknown, allowed: readonly string[], foreign?: Foreign): void {
  const wrong = wrongKey(what, value, allowed, foreign);
  if (wrong) throw wrong;
}
