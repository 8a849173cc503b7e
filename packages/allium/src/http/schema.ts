/** The part of JSON Schema that bodies are described with: checked here, and shown in the OpenAPI document. */
import { isRecord } from '../kit/index.js';
import { invalidRequest } from './failures.js';

export interface BodySchema {
  readonly type?: 'object' | 'array' | 'string' | 'boolean' | 'integer';
  readonly description?: string;
  readonly properties?: Readonly<Record<string, BodySchema>>;
  readonly required?: readonly string[];
  /** Schema of all other properties; false: there are none. */
  readonly additionalProperties?: boolean | BodySchema;
  readonly minProperties?: number;
  readonly items?: BodySchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly oneOf?: readonly BodySchema[];
}

export function object(
  properties: Readonly<Record<string, BodySchema>>,
  required: readonly string[] = [],
  rest: Partial<BodySchema> = {},
): BodySchema {
  return { type: 'object', properties, required, additionalProperties: false, ...rest };
}

/** Throws a 400 that names the place. */
export function checkBody(schema: BodySchema, value: unknown, at = 'The body'): void {
  const wrong = flaw(schema, value, at);
  if (wrong !== undefined) throw invalidRequest(wrong);
}

function flaw(schema: BodySchema, value: unknown, at: string): string | undefined {
  const { oneOf, type } = schema;
  if (oneOf) return oneOfFlaw(oneOf, value, at);
  if (schema.const !== undefined && value !== schema.const)
    return `${at} has to be ${JSON.stringify(schema.const)}.`;
  if (schema.enum && !schema.enum.includes(value))
    return `${at} has to be one of ${schema.enum.map((one) => JSON.stringify(one)).join(', ')}.`;
  switch (type) {
    case 'object':
      return isRecord(value) ? objectFlaw(schema, value, at) : `${at} has to be an object.`;
    case 'array':
      return Array.isArray(value) ? arrayFlaw(schema, value, at) : `${at} has to be a list.`;
    case 'string': {
      if (typeof value !== 'string') return `${at} has to be text.`;
      const { minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema;
      if (value.length < minLength) return `${at} must not be empty.`;
      return value.length > maxLength ? `${at} is longer than ${maxLength} characters.` : undefined;
    }
    case 'boolean':
      return typeof value === 'boolean' ? undefined : `${at} has to be true or false.`;
    case 'integer':
      return Number.isInteger(value) ? undefined : `${at} has to be a whole number.`;
    default:
      return undefined;
  }
}

/** Says what is wrong with the alternative that was meant: the one of this kind whose fixed fields fit. */
function oneOfFlaw(oneOf: readonly BodySchema[], value: unknown, at: string): string | undefined {
  if (oneOf.some((one) => flaw(one, value, at) === undefined)) return undefined;
  const alike = oneOf.filter(({ type }) => flaw({ type }, value, at) === undefined);
  if (alike.length === 0) return `${at} has to be ${[...new Set(oneOf.map(kindOf))].join(' or ')}.`;
  const fixed = (one: BodySchema) =>
    Object.entries(one.properties ?? {}).filter(([, { const: only }]) => only);
  const meant = alike.find((one) =>
    fixed(one).every(([name, { const: only }]) => (value as Record<string, unknown>)[name] === only),
  );
  if (meant) return flaw(meant, value, at);
  const tags = alike.flatMap(fixed);
  return `${at} needs \`${tags[0]![0]}\`: one of ${tags.map(([, tag]) => JSON.stringify(tag.const)).join(', ')}.`;
}

function kindOf({ type }: BodySchema): string {
  return type === 'string' ? 'text' : type === 'array' ? 'a list' : 'an object';
}

function objectFlaw(
  { properties = {}, required = [], additionalProperties = true, minProperties = 0 }: BodySchema,
  value: Readonly<Record<string, unknown>>,
  at: string,
): string | undefined {
  if (Object.keys(value).length < minProperties) return `${at} must not be empty.`;
  for (const name of required) if (value[name] === undefined) return `${at} needs \`${name}\`.`;
  for (const [name, inner] of Object.entries(value)) {
    if (inner === undefined) continue;
    const schema = Object.hasOwn(properties, name) ? properties[name]! : additionalProperties;
    if (schema === false)
      return `${at} has an unknown field ${JSON.stringify(name.slice(0, 80))}. It takes ${Object.keys(properties).join(', ') || 'none'}.`;
    const wrong = schema === true ? undefined : flaw(schema, inner, `\`${name.slice(0, 80)}\``);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function arrayFlaw(
  { items, minItems = 0, maxItems = 10_000 }: BodySchema,
  value: readonly unknown[],
  at: string,
) {
  if (value.length < minItems) return `${at} must not be empty.`;
  if (value.length > maxItems) return `${at} has more than ${maxItems} items.`;
  for (const [i, item] of value.entries()) {
    const wrong = items && flaw(items, item, `${at}, item ${i + 1},`);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}
