/** The JSON Schema of an answer as providers want it. */
import type { JsonSchema } from 'allium';
import { isObject, type Loose } from './language-model.js';

export function responseFormat(schema: JsonSchema): Loose {
  const { title } = schema;
  const named = typeof title === 'string' && /^[\w-]{1,64}$/.test(title) && { name: title };
  return { type: 'json', schema: anyOfOnly(closed(schema)), ...named };
}

/** Gemini knows no `oneOf`, nor do others. What the model sends is judged by the schema itself in any case. */
export function anyOfOnly(schema: JsonSchema): JsonSchema {
  if (!some(schema, (part) => 'oneOf' in part)) return schema;
  return walked(schema, (part) => {
    if ('anyOf' in part) return part;
    return Object.fromEntries(
      Object.entries(part).map(([key, value]) => [key === 'oneOf' ? 'anyOf' : key, value]),
    );
  });
}

/**
 * OpenAI and Anthropic refuse objects that may have more fields than are listed, so objects that don't say so are closed.
 * Parts of an intersection may not be: each would forbid the fields of the others.
 */
function closed(schema: JsonSchema): JsonSchema {
  if (some(schema, (part) => 'allOf' in part)) return schema;
  return walked(schema, (part) => {
    const isOpen = part.additionalProperties === undefined && part.patternProperties === undefined;
    return isObject(part.properties) && isOpen ? { ...part, additionalProperties: false } : part;
  });
}

/** A schema that was changed, and before it every schema inside. */
function walked(schema: JsonSchema, change: (part: JsonSchema) => JsonSchema): JsonSchema {
  const each = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(each);
    return isObject(value) ? walked(value, change) : value;
  };
  const made: Record<string, unknown> = { ...schema };
  for (const [key, value] of Object.entries(schema)) {
    if (ONE.has(key)) made[key] = each(value);
    else if (NAMED.has(key) && isObject(value))
      made[key] = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, each(one)]));
  }
  return change(made);
}

/** Keywords that hold a schema or a list of them. */
const ONE = new Set(['items', 'prefixItems', 'anyOf', 'oneOf', 'allOf', 'additionalProperties', 'not']);
/** Keywords that hold schemas by name. */
const NAMED = new Set(['properties', '$defs', 'definitions', 'patternProperties']);

/** Is it so for the schema or one inside? */
function some(schema: unknown, test: (part: Loose) => boolean): boolean {
  if (Array.isArray(schema)) return schema.some((one) => some(one, test));
  if (!isObject(schema)) return false;
  return (
    test(schema) ||
    Object.entries(schema).some(
      ([key, value]) =>
        (ONE.has(key) && some(value, test)) ||
        (NAMED.has(key) && isObject(value) && some(Object.values(value), test)),
    )
  );
}

/**
 * Can OpenAI enforce it? In strict mode, which its packages ask for by default, it takes only a part of JSON Schema and
 * answers 400 to the rest, such as a field that may be missing.
 */
export function isStrict(schema: JsonSchema): boolean {
  return schema.type === 'object' && !('anyOf' in schema) && !some(closed(schema), isBeyond);
}

function isBeyond(part: Loose): boolean {
  const { format, pattern, properties, required = [], type } = part;
  if (Object.keys(part).some((key) => !ENFORCED.has(key))) return true;
  if (format !== undefined && !FORMATS.has(String(format))) return true;
  if (pattern !== undefined && LOOKS_AROUND.test(String(pattern))) return true;
  if (!KINDS.some((key) => key in part) || isDressedReference(part)) return true;
  const isAnyObject = type === 'object' || (Array.isArray(type) && type.includes('object'));
  if (isAnyObject && (part.additionalProperties !== false || !isObject(properties))) return true;
  const names = isObject(properties) ? Object.keys(properties) : [];
  return !Array.isArray(required) || names.some((name) => !required.includes(name));
}

/** Each part has to say what it is. */
const KINDS = ['type', 'enum', 'const', 'anyOf', '$ref'];

/** A reference has to stand alone. */
function isDressedReference(part: Loose): boolean {
  return '$ref' in part && Object.keys(part).length > 1;
}

/** As patterns that some versions of zod have for addresses of e-mail. */
const LOOKS_AROUND = /\(\?<?[=!]/;

const ENFORCED = new Set([
  ...[
    '$schema',
    '$id',
    '$ref',
    '$defs',
    'definitions',
    'title',
    'description',
    'type',
    'enum',
    'const',
    'anyOf',
  ],
  ...['properties', 'required', 'additionalProperties', 'items', 'minItems', 'maxItems', 'pattern', 'format'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
]);

const FORMATS = new Set([
  ...['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'],
]);
