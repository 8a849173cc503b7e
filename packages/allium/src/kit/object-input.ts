/** Input schemas for this package's own tools: Standard Schemas without a schema library. */
import { isRecord } from '../kernel/lib/errors.js';
import * as kinds from '../kernel/lib/kinds.js';
import { isOf, type Kind } from '../kernel/lib/shapes.js';
import { deepFreeze } from '../kernel/messages/messages.js';
import type { JsonSchema } from '../kernel/messages/model.js';
import type { SchemaIssue, StandardSchema } from '../kernel/messages/standard-schema.js';

/** One property of the input. `object` also accepts the JSON text of an object, which some models write. */
export interface Field {
  readonly type: 'text' | 'integer' | 'texts' | 'object';
  /** Shown to the model. */
  readonly description: string;
  /** @default false */
  readonly optional?: boolean;
  /** The text if the property is left out. */
  readonly default?: string;
  /** Suggested to the model; other texts are accepted too. */
  readonly oneOf?: readonly string[];
  /** The smallest integer, or the fewest texts. */
  readonly min?: number;
  readonly max?: number;
}

/**
 * An input schema for a tool, without a schema library: a flat object with these properties. Others are refused, because a
 * misspelt one would be ignored silently.
 *
 * @example
 * objectInput<{ path: string }>({ path: { type: 'text', description: 'Which file.' } });
 */
export function objectInput<T extends object>(
  fields: Readonly<Record<keyof T & string, Field>>,
): StandardSchema<T> {
  const known = Object.entries<Field>(fields).map(([key, field]) => ({ key, field, kind: kindOf(field) }));
  const inputSchema = jsonSchema(known);
  return Object.freeze({
    '~standard': Object.freeze({
      version: 1 as const,
      vendor: 'allium',
      validate(value: unknown) {
        if (!isRecord(value)) return { issues: [{ message: 'Expected an object.' }] };
        const issues: SchemaIssue[] = [];
        const out: Record<string, unknown> = {};
        for (const key of Object.keys(value)) {
          if (!Object.hasOwn(fields, key))
            issues.push({
              path: [key],
              message: `Unknown property. Expected: ${Object.keys(fields).join(', ')}.`,
            });
        }
        for (const { key, field, kind } of known) {
          // Models that have to fill in every property write null for the ones they don't need.
          const given = (Object.hasOwn(value, key) ? value[key] : undefined) ?? field.default;
          if (given === undefined && field.optional) continue;
          const read = field.type === 'object' ? parsedObject(given) : given;
          if (isOf(kind, read)) out[key] = read;
          else issues.push({ path: [key], message: `Expected ${kind.expected}.` });
        }
        return issues.length > 0 ? { issues } : { value: out as T };
      },
      jsonSchema: Object.freeze({ input: () => inputSchema as Record<string, unknown> }),
    }),
  });
}

function kindOf({ type, min, max }: Field): Kind {
  switch (type) {
    case 'text':
      return kinds.text;
    case 'integer':
      return kinds.integer(min, max);
    case 'texts':
      return kinds.listOf(kinds.text, `a list of texts${min === undefined ? '' : `, at least ${min}`}`, min);
    case 'object':
      return kinds.record;
  }
}

/** Some models write the JSON text of an object instead of the object. */
function parsedObject(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
}

type Known = readonly { readonly key: string; readonly field: Field; readonly kind: Kind }[];

function jsonSchema(known: Known): JsonSchema {
  const properties = known.map(({ key, field: { description, oneOf }, kind }) => [
    key,
    { ...kind.schema, description, ...(oneOf && { enum: [...oneOf] }) },
  ]);
  const needed = known.filter(({ field }) => !field.optional && field.default === undefined);
  return deepFreeze({
    type: 'object',
    properties: Object.fromEntries(properties),
    required: needed.map(({ key }) => key),
    additionalProperties: false,
  });
}
