/** Schemas of zod 3, which many tools still have. Unlike later ones, they don't say what their JSON Schema is. */

import type { JsonSchema } from 'allium';
import { isObject, type Loose } from './language-model.js';

// biome-ignore lint/suspicious/noExplicitAny: what is in a definition depends on its `typeName`.
type Definition = Readonly<Record<string, any>>;

export interface Zod3Schema {
  readonly _def: Definition & { readonly typeName: string };
  readonly description?: string;
  isOptional(): boolean;
  safeParseAsync(value: unknown): Promise<Checked>;
}

interface Checked {
  readonly success: boolean;
  readonly data?: unknown;
  readonly error?: {
    readonly issues: readonly { readonly message: string; readonly path: (string | number)[] }[];
  };
}

export function isZod3(value: unknown): value is Zod3Schema {
  return isObject(value) && isObject(value._def) && typeof value._def.typeName === 'string';
}

/** Throws if it has a part that JSON Schema can't express. */
export function zod3JsonSchema(schema: Zod3Schema): JsonSchema {
  const { _def: definition, description } = schema;
  const { typeName } = definition;
  const convert = Object.hasOwn(KINDS, typeName) ? KINDS[typeName] : undefined;
  if (!convert) throw new Error(`a ${typeName} of zod 3 has no JSON Schema here`);
  return { ...convert(definition), ...(description && { description }) };
}

const of = zod3JsonSchema;
const inner = ({ innerType }: Definition) => of(innerType);
const anyOf = ({ options }: Definition) => ({ anyOf: [...options.values()].map(of) });
const anything = () => ({});

const KINDS: Readonly<Record<string, (definition: Definition) => JsonSchema>> = {
  ZodObject: ({ shape, unknownKeys }) => {
    const fields = Object.entries(shape() as Record<string, Zod3Schema>);
    const required = fields.filter(([, field]) => !field.isOptional()).map(([name]) => name);
    return {
      type: 'object',
      properties: Object.fromEntries(fields.map(([name, field]) => [name, of(field)])),
      ...(required.length > 0 && { required }),
      ...(unknownKeys === 'strict' && { additionalProperties: false }),
    };
  },
  ZodRecord: ({ valueType }) => ({ type: 'object', additionalProperties: of(valueType) }),
  ZodArray: ({ type, minLength, maxLength, exactLength }) => ({
    type: 'array',
    items: of(type),
    ...limit('minItems', (minLength ?? exactLength)?.value),
    ...limit('maxItems', (maxLength ?? exactLength)?.value),
  }),
  ZodTuple: ({ items, rest }) => ({
    type: 'array',
    prefixItems: items.map(of),
    items: rest ? of(rest) : false,
  }),
  ZodString: ({ checks }) => ({ type: 'string', ...rules(checks, TEXT_RULES) }),
  ZodNumber: ({ checks }) => ({ type: 'number', ...rules(checks, NUMBER_RULES) }),
  ZodBoolean: () => ({ type: 'boolean' }),
  ZodNull: () => ({ type: 'null' }),
  ZodAny: anything,
  ZodUnknown: anything,
  ZodLiteral: ({ value }) => ({ const: value }),
  ZodEnum: ({ values }) => ({ type: 'string', enum: [...values] }),
  // Numeric members of an `enum` of TypeScript are listed by value, too.
  ZodNativeEnum: ({ values }) => ({
    enum: Object.keys(values)
      .filter((key) => typeof values[values[key]] !== 'number')
      .map((key) => values[key]),
  }),
  ZodUnion: anyOf,
  ZodDiscriminatedUnion: anyOf,
  ZodIntersection: ({ left, right }) => ({ allOf: [of(left), of(right)] }),
  ZodNullable: (definition) => ({ anyOf: [inner(definition), { type: 'null' }] }),
  ZodDefault: (definition) => ({ ...inner(definition), default: definition.defaultValue() }),
  ZodOptional: inner,
  ZodReadonly: inner,
  ZodCatch: inner,
  ZodBranded: ({ type }) => of(type),
  ZodEffects: ({ schema }) => of(schema),
  ZodPipeline: (definition) => of(definition.in),
};

type Rule = (check: Definition) => JsonSchema;

const format = ({ kind }: Definition) => ({ format: FORMATS[kind] ?? kind });
const FORMATS: Readonly<Record<string, string>> = { url: 'uri', datetime: 'date-time' };

const TEXT_RULES: Readonly<Record<string, Rule>> = {
  min: ({ value }) => ({ minLength: value }),
  max: ({ value }) => ({ maxLength: value }),
  length: ({ value }) => ({ minLength: value, maxLength: value }),
  regex: ({ regex }) => ({ pattern: regex.source }),
  email: format,
  uuid: format,
  url: format,
  date: format,
  datetime: format,
};

const NUMBER_RULES: Readonly<Record<string, Rule>> = {
  int: () => ({ type: 'integer' }),
  min: ({ value, inclusive }) => ({ [inclusive ? 'minimum' : 'exclusiveMinimum']: value }),
  max: ({ value, inclusive }) => ({ [inclusive ? 'maximum' : 'exclusiveMaximum']: value }),
  multipleOf: ({ value }) => ({ multipleOf: value }),
};

/** The model isn't shown rules that aren't listed; they are still checked. */
function rules(checks: readonly Definition[], known: Readonly<Record<string, Rule>>): JsonSchema {
  return Object.assign(
    {},
    ...checks.map((check) => (Object.hasOwn(known, check.kind) ? known[check.kind]!(check) : {})),
  );
}

function limit(name: string, value: number | undefined): Loose {
  return value === undefined ? {} : { [name]: value };
}
