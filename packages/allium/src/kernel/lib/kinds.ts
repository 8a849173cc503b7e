/** The kinds of values that options have. Each has its text for error messages and its JSON Schema. */
import { AlliumError, invalidOption, isOptions } from './errors.js';
import { type Foreign, foreignModel } from './foreign-names.js';
import { type Fields, type Kind, type OptionsOf, type TypeOf, wrongField, wrongValue } from './shapes.js';

/**
 * A kind of your own: `expected` completes "Expected `x` to be …".
 *
 * @example
 * const port = kinds.kind<number>('a port', (value) => Number.isInteger(value) && value > 0 && value < 65_536);
 */
export function kind<T>(
  expected: string,
  fits: (value: any) => boolean,
  more?: Pick<Kind<T>, 'inside' | 'schema' | 'lacks'>,
): Kind<T> {
  return { expected, fits, ...more };
}

/** Any value. */
export const anything: Kind<any> = kind('a value', (value) => value !== undefined, { schema: {} });

/** Text, which may be empty. */
export const text: Kind<string> = kind('text', (value) => typeof value === 'string', {
  schema: { type: 'string' },
});

/** Text with at least one character. */
export const nonEmptyText: Kind<string> = kind(
  'non-empty text',
  (value) => typeof value === 'string' && value !== '',
  { schema: { type: 'string', minLength: 1 } },
);

/** `true` or `false`. */
export const flag: Kind<boolean> = kind('true or false', (value) => typeof value === 'boolean', {
  schema: { type: 'boolean' },
});

/** Any plain object. Lists, maps and dates are not. */
export const record: Kind<Readonly<Record<string, any>>> = kind('an object', isOptions, {
  schema: { type: 'object' },
});

/**
 * The JSON Schema of values that only code can make, such as functions. A validator accepts anything for it; the schemas for
 * editors use `{ import, name }` instead.
 */
export const CODE: Readonly<Record<string, unknown>> = { 'x-code': true };

/**
 * Like `CODE`, for things that also have names: options of `resolveMiddleware()` and in files take the name instead, or
 * `{ use: 'name', … }` with options.
 */
export const NAMED = {
  model: { 'x-code': true, 'x-named': 'model' },
  tool: { 'x-code': true, 'x-named': 'tool' },
  middleware: { 'x-code': true, 'x-named': 'middleware' },
} as const;

/** A function. */
export function func<T = (...args: any[]) => any>(): Kind<T> {
  return kind('a function', (value) => typeof value === 'function', { schema: CODE });
}

/** An object of any class with these methods. */
export function methods<T>(...names: readonly (keyof T & string)[]): Kind<T> {
  const isObject = (value: any) =>
    (typeof value === 'object' || typeof value === 'function') && value !== null;
  const lacks = (value: any) =>
    isObject(value) ? names.filter((name) => typeof value[name] !== 'function') : [];
  return kind(
    `an object with ${names.map((name) => `${name}()`).join(', ')}`,
    (value) => isObject(value) && lacks(value).length === 0,
    // If it has none of them, the list of expected methods is enough.
    { schema: CODE, lacks: (value) => (lacks(value).length < names.length ? lacks(value) : []) },
  );
}

/** A model. For something else, the error says how to make a model of it. */
export function model<T extends { readonly stream: unknown }>(): Kind<T> {
  return kind('a model', () => true, { inside: wrongModel, schema: NAMED.model });
}

function wrongModel(given: unknown, option: string): AlliumError | undefined {
  const { provider, id, stream } = Object(given) as Readonly<Record<string, unknown>>;
  const streams = typeof given === 'object' && typeof stream === 'function';
  if (streams && typeof provider === 'string' && typeof id === 'string') return undefined;
  const { message, data } = streams
    ? invalidOption(option, 'a model with `provider` and `id` as text', { provider, id })
    : invalidOption(option, 'a model with provider, id and stream()', given);
  return new AlliumError('INVALID_OPTION', `${message}${foreignModel(given)}`, { data });
}

/** An integer from `from` up to and including `to`. */
export function integer(from = Number.MIN_SAFE_INTEGER, to = Number.MAX_SAFE_INTEGER): Kind<number> {
  const bounds = boundsOf(from, to, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  return kind(`an integer${bounds.words}`, (value) => Number.isInteger(value) && bounds.hold(value), {
    schema: { type: 'integer', ...bounds.schema },
  });
}

/** A number from `from` up to and including `to`. Infinity passes only if `to` is Infinity. */
export function number(from = -Number.MAX_VALUE, to = Number.MAX_VALUE): Kind<number> {
  const bounds = boundsOf(from, to, -Number.MAX_VALUE, Number.MAX_VALUE);
  const words = to === Number.MAX_VALUE ? 'a finite number' : 'a number';
  return kind(`${words}${bounds.words}`, (value) => typeof value === 'number' && bounds.hold(value), {
    schema: { type: 'number', ...bounds.schema },
  });
}

function boundsOf(from: number, to: number, least: number, most: number) {
  const [above, below] = [from > least, to < most];
  return {
    words: above && below ? ` from ${from} to ${to}` : above ? ` ≥ ${from}` : below ? ` ≤ ${to}` : '',
    hold: (value: number) => value >= from && value <= to,
    schema: { ...(above && { minimum: from }), ...(below && { maximum: to }) },
  };
}

/** Milliseconds that something may take. Infinity means no limit. */
export const timeout: Kind<number> = number(0, Number.POSITIVE_INFINITY);

/** One of these texts. */
export function oneOf<const T extends string>(...choices: readonly T[]): Kind<T> {
  const last = choices.length - 1;
  const words = choices.map((choice, i) => `${i === 0 ? '' : i === last ? ' or ' : ', '}'${choice}'`);
  return kind(words.join(''), (value) => choices.includes(value), { schema: { enum: choices } });
}

/**
 * A list with at least `least` items of one kind. With `expected`, errors are about the whole list; otherwise they name the
 * wrong item, as in `models[2]`.
 */
export function listOf<T>(item: Kind<T>, expected?: string, least = 0): Kind<readonly T[]> {
  // By index: a hole in a list is a wrong item, too.
  const wrongItem = (list: readonly unknown[], option: string) => {
    for (let i = 0; i < list.length; i++) {
      const wrong = wrongValue(`${option}[${i}]`, item, list[i]);
      if (wrong) return wrong;
    }
    return undefined;
  };
  const long = (value: unknown): value is readonly unknown[] => Array.isArray(value) && value.length >= least;
  const schema = item.schema && {
    schema: { type: 'array', items: item.schema, ...(least > 0 && { minItems: least }) },
  };
  if (expected === undefined)
    return kind(least > 0 ? 'a non-empty list' : 'a list', long, { inside: wrongItem, ...schema });
  return kind(expected, (value) => long(value) && wrongItem(value, '') === undefined, schema);
}

/** A list of anything. */
export const list: Kind<readonly any[]> = kind('a list', Array.isArray, { schema: { type: 'array' } });

/** A list of texts that name something. */
export const names: Kind<readonly string[]> = listOf(text, 'a list of names');

/** A value of one of these kinds. The first that fits is used. */
export function either<const K extends readonly Kind[]>(...kinds: K): Kind<TypeOf<K[number]>> {
  const schemas = new Set(kinds.flatMap(({ schema }) => (schema ? [schema] : [])));
  const [one, ...more] = schemas;
  return kind(
    kinds.map(({ expected }) => expected).join(' or '),
    (value) => kinds.some(({ fits }) => fits(value)),
    {
      inside: (value, option) => kinds.find(({ fits }) => fits(value))?.inside?.(value, option),
      ...(one && { schema: more.length === 0 ? one : { anyOf: [one, ...more] } }),
    },
  );
}

/** An object with these fields and no others. `foreign` says what other libraries call them. */
export function shape<const F extends Fields>(fields: F, foreign?: Foreign): Kind<OptionsOf<F>> {
  const needed = Object.keys(fields).filter((name) => fields[name]!.required);
  return kind('an object', isOptions, {
    inside: (value, option) => wrongField(option, fields, value, foreign, `${option}.`),
    schema: {
      type: 'object',
      properties: Object.fromEntries(Object.entries(fields).map(([name, one]) => [name, one.schema ?? {}])),
      ...(needed.length > 0 && { required: needed }),
      additionalProperties: false,
    },
  });
}

/** Makes a field required. */
export function required<K extends Kind>(of: K): K & { readonly required: true } {
  return { ...of, required: true };
}
