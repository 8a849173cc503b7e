/** Raw JSON Schema where a Standard Schema is wanted: for tools from elsewhere that come with their own schema. */

import {
  AlliumError,
  type JsonSchema,
  type SchemaIssue,
  type SchemaResult,
  type StandardSchema,
} from '../index.js';
import { deepFreeze, invalidOption, isStandardSchema, messageOf } from '../kit/index.js';

type Validate = (value: unknown) => SchemaIssue[] | undefined;

/**
 * Makes a Standard Schema from a JSON Schema (draft 2020-12, or 06, 07 and 2019-09 if `$schema` says so). Values are checked
 * by `ajv`, which is loaded for the first value: install it beside this package. Values pass unchanged: `default`
 * fills nothing in, and `format` is not checked.
 *
 * @example
 * const weather = tool({
 *   name: 'weather',
 *   description: 'The weather of a city.',
 *   input: jsonSchema<{ city: string }>({
 *     type: 'object',
 *     properties: { city: { type: 'string' } },
 *     required: ['city'],
 *   }),
 *   execute: ({ city }) => `Sunny in ${city}.`,
 * });
 */
export function jsonSchema<T = unknown>(schema: object): StandardSchema<T, T> {
  const plain =
    typeof schema === 'object' && schema !== null && !Array.isArray(schema) && !isStandardSchema(schema);
  if (!plain) throw invalidOption('schema', 'a JSON Schema object', schema);
  // A copy, so that what the model is shown and what is checked stay the same, even if the original is changed.
  const own = deepFreeze(JSON.parse(JSON.stringify(schema)) as JsonSchema);
  let check: Validate | undefined;
  const result = (value: unknown): SchemaResult<T> => {
    const issues = check!(value);
    return issues ? { issues } : { value: value as T };
  };
  return Object.freeze({
    '~standard': Object.freeze({
      version: 1 as const,
      vendor: 'allium',
      validate: (value: unknown) => {
        if (check) return result(value);
        return compile(own).then((compiled) => {
          check = compiled;
          return result(value);
        });
      },
      jsonSchema: Object.freeze({
        input: () => own as Record<string, unknown>,
        output: () => own as Record<string, unknown>,
      }),
    }),
  });
}

/** The part of ajv that is used. */
interface Ajv {
  validateSchema(schema: object, throwOrLogError: boolean): unknown;
  compile(
    schema: object,
  ): ((value: unknown) => boolean) & { errors?: readonly AjvError[] | null; $async?: true };
}

interface AjvError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly message?: string;
  readonly params: Readonly<Record<string, unknown>>;
}

type AjvClass = new (options: object) => Ajv;

/**
 * An instance keeps everything it ever compiled, so each schema has its own, which goes with it. These don't check
 * the schemas themselves, which would take most of the time: one instance does that for all, and compiles only the
 * meta-schema.
 */
interface Dialect {
  readonly checks: Ajv;
  readonly make: () => Ajv;
}

const OPTIONS = {
  code: { regExp },
  allErrors: true,
  strict: false,
  validateFormats: false,
  logger: false,
};

/** Other languages allow escapes that expressions with the flag `u` don't, such as `\\:`. */
function regExp(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(pattern, flags);
  } catch {
    return new RegExp(pattern);
  }
}
regExp.code = 'new RegExp';

const newest = once(async () => classOf(await import('ajv/dist/2020.js'), 'Ajv2020'));

/** By what `$schema` says, in any of the ways it is written. */
const dialects = [
  // Many servers still write 06 and 07. What is valid in 06 means the same in 07.
  {
    name: /^https?:\/\/json-schema\.org\/draft-0[67]\/schema#?$/,
    load: once(async () => classOf(await import('ajv'), 'Ajv')),
  },
  {
    name: /^https?:\/\/json-schema\.org\/draft\/2019-09\/schema#?$/,
    load: once(async () => classOf(await import('ajv/dist/2019.js'), 'Ajv2019')),
  },
  { name: /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/, load: newest },
];

async function compile(schema: JsonSchema): Promise<Validate> {
  const { $schema, ...rest } = schema;
  const dialect = dialects.find(({ name }) => name.test(String($schema)));
  const { checks, make } = await load(dialect?.load ?? newest);
  let validate: ReturnType<Ajv['compile']>;
  try {
    // ajv knows each under one name only.
    const spoken = dialect ? rest : schema;
    checks.validateSchema(spoken, true);
    validate = make().compile(spoken);
    // An extension of ajv: such a schema answers with a promise, which would count as valid.
    if (validate.$async) throw new Error('`$async` is not supported');
  } catch (error) {
    throw new AlliumError(
      'INVALID_TOOL',
      `This is not a JSON Schema: ${messageOf(error)}. Repair the schema given to jsonSchema().`,
      {
        cause: error,
        data: { schema },
      },
    );
  }
  return (value) => (validate(value) ? undefined : (validate.errors ?? []).map(toIssue));
}

async function load(dialect: () => Promise<Dialect>): Promise<Dialect> {
  try {
    return await dialect();
  } catch (error) {
    throw new AlliumError(
      'MISSING_DEPENDENCY',
      'jsonSchema() checks values with the package "ajv", which cannot be loaded. Run `npm install ajv`.',
      {
        cause: error,
        data: { dependency: 'ajv' },
      },
    );
  }
}

/** Loads once. After a failure, the next call tries again. */
function once(load: () => Promise<AjvClass>): () => Promise<Dialect> {
  let loading: Promise<Dialect> | undefined;
  return () => {
    loading ??= load().then((Class) => ({
      checks: new Class(OPTIONS),
      make: () => new Class({ ...OPTIONS, validateSchema: false }),
    }));
    loading.catch(() => {
      loading = undefined;
    });
    return loading;
  };
}

/** ajv is CommonJS: bundlers and runtimes disagree on where its class ends up. */
function classOf(module: object, name: string): AjvClass {
  const { default: fallback, [name]: named } = module as Record<string, Record<string, unknown> | undefined>;
  return (named ?? fallback?.[name] ?? fallback?.default ?? fallback) as AjvClass;
}

function toIssue({ instancePath, message = 'is invalid', params }: AjvError): SchemaIssue {
  const path = instancePath
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  const named = params.additionalProperty ?? params.unevaluatedProperty;
  if (named !== undefined) return { path, message: `${message}: "${named}"` };
  if (Array.isArray(params.allowedValues))
    return {
      path,
      message: `${message}: ${params.allowedValues.map((one) => JSON.stringify(one)).join(', ')}`,
    };
  if ('allowedValue' in params)
    return { path, message: `${message}: ${JSON.stringify(params.allowedValue)}` };
  return { path, message };
}
