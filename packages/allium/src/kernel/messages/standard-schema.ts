/** The parts of the Standard Schema interfaces the kernel uses. Types only: no schema library is imported. */
import { AlliumError, isRecord, isThenable, messageOf, shown } from '../lib/errors.js';
import type { JsonSchema } from './model.js';
import { coercedByZod, failingField, shownByArktype, unshown } from './unshown-fields.js';

export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly jsonSchema?: {
      readonly input: ToJson;
      readonly output?: ToJson;
    };
  };
}

type ToJson = (options: {
  readonly target: string;
  readonly libraryOptions?: Record<string, unknown>;
}) => Record<string, unknown>;

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Is it a schema of zod, valibot, arktype or another Standard Schema library? */
export function isStandardSchema(value: unknown): value is StandardSchema {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return false;
  const standard = (value as Record<string, unknown>)['~standard'];
  return (
    typeof standard === 'object' &&
    standard !== null &&
    typeof (standard as { validate?: unknown }).validate === 'function'
  );
}

/** The JSON Schema of a schema's input: from the schema itself, or from `convert`. `owner` starts the error message. */
export function jsonSchemaOf(
  owner: string,
  schema: StandardSchema,
  convert?: (schema: never) => object,
): JsonSchema {
  if (!convert && !schema['~standard'].jsonSchema)
    throw new AlliumError(
      'INVALID_TOOL',
      `${owner}: a ${schema['~standard'].vendor} schema does not expose its JSON Schema. Pass \`toJsonSchema\`, for example the function of that name from @valibot/to-json-schema.`,
    );
  try {
    return withoutDialect(converted(schema, convert));
  } catch (error) {
    throw new AlliumError(
      'INVALID_TOOL',
      `${owner}: its schema cannot be expressed as JSON Schema: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

function converted(schema: StandardSchema, own?: (schema: never) => object): object {
  const target = 'draft-2020-12';
  const convert = (one: StandardSchema): object =>
    own ? own(one as never) : one['~standard'].jsonSchema!.input({ target });
  const { vendor, jsonSchema } = schema['~standard'];
  if (vendor === 'arktype' && !own)
    return shownByArktype((libraryOptions) => jsonSchema!.input({ target, libraryOptions }));
  try {
    return convert(schema);
  } catch (error) {
    const coerced =
      vendor === 'zod' && !own
        ? coercedByZod((libraryOptions) => jsonSchema!.input({ target, libraryOptions }))
        : undefined;
    if (coerced) return coerced;
    throw new TypeError(unshown(failingField(schema, convert) ?? '', messageOf(error)), { cause: error });
  }
}

function withoutDialect(schema: unknown): JsonSchema {
  const promised = isThenable(schema);
  if (promised) schema.then(undefined, () => {});
  if (promised || !isRecord(schema))
    throw new TypeError(`Expected a JSON Schema object, got ${promised ? 'a promise' : shown(schema)}.`);
  const { $schema: _, ...rest } = schema;
  return Object.freeze(rest);
}

/** Does it clearly exclude objects? A schema that leaves it open, or refers to another, may allow them. */
export function excludesObjects({ type, anyOf, oneOf }: JsonSchema): boolean {
  if (type !== undefined) return type !== 'object' && !(Array.isArray(type) && type.includes('object'));
  return [anyOf, oneOf].some((choices) => Array.isArray(choices) && choices.every(isNoObject));
}

function isNoObject(schema: unknown): boolean {
  return isRecord(schema) ? excludesObjects(schema) : schema === false;
}

/** What is wrong with a value, in one line per issue: `path: message`. */
export function describeIssues(issues: readonly SchemaIssue[]): string {
  return issues
    .map((issue) => {
      const path = (issue.path ?? [])
        .map((step) => String(typeof step === 'object' ? step.key : step))
        .join('.');
      return path ? `${path}: ${issue.message}` : issue.message;
    })
    .join('\n');
}
