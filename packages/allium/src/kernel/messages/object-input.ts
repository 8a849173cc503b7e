/** Input schemas for the tools this package brings itself: Standard Schemas without a schema library. */
import { isRecord } from '../lib/errors.js';
import { deepFreeze } from './messages.js';
import type { JsonSchema } from './model.js';
import type { SchemaIssue, StandardSchema } from './standard-schema.js';

/** One property of the input. `object` also takes the JSON text of an object, which some models write. */
export interface Field {
  readonly type: 'text' | 'integer' | 'texts' | 'object';
  /** Shown to the model. */
  readonly description: string;
  /** @default false */
  readonly optional?: boolean;
  /** What a text is when it is left out. */
  readonly default?: string;
  /** Suggested to the model; other texts are let through. */
  readonly oneOf?: readonly string[];
  /** The smallest integer, or the fewest texts. */
  readonly min?: number;
  readonly max?: number;
}

/**
 * An input schema for a tool, without a schema library: a flat object with these properties. Others are refused, for a
 * misspelt one would be ignored silently.
 *
 * @example
 * objectInput<{ path: string }>({ path: { type: 'text', description: 'Which file.' } });
 */
export function objectInput<T extends object>(
  fields: Readonly<Record<keyof T & string, Field>>,
): StandardSchema<T> {
  const entries = Object.entries<Field>(fields);
  const shown = jsonSchema(entries);
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
        for (const [key, field] of entries) {
          // Models that have to fill every property in write null for the ones they do not need.
          const given = (Object.hasOwn(value, key) ? value[key] : undefined) ?? field.default;
          if (given === undefined && field.optional) continue;
          const kind = KINDS[field.type];
          const read = kind.read(given, field);
          if (read === undefined) issues.push({ path: [key], message: `Expected ${kind.wanted(field)}.` });
          else out[key] = read;
        }
        return issues.length > 0 ? { issues } : { value: out as T };
      },
      jsonSchema: Object.freeze({ input: () => shown as Record<string, unknown> }),
    }),
  });
}

/** What there is to know about a type of property. */
interface Kind {
  /** The value as the tool gets it; undefined when it does not fit. */
  read(value: unknown, field: Field): unknown;
  wanted(field: Field): string;
  schema(field: Field): object;
}

const KINDS: Readonly<Record<Field['type'], Kind>> = {
  text: {
    read: (value) => (typeof value === 'string' ? value : undefined),
    wanted: () => 'text',
    schema: ({ description, oneOf }) => ({ type: 'string', description, ...(oneOf && { enum: [...oneOf] }) }),
  },
  integer: {
    read(value, { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER }) {
      const fits = Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
      return fits ? value : undefined;
    },
    wanted: ({ min, max }) =>
      `an integer${min === undefined ? '' : ` ≥ ${min}`}${max === undefined ? '' : ` and ≤ ${max}`}`,
    schema: ({ description, min, max }) => ({
      type: 'integer',
      description,
      ...(min !== undefined && { minimum: min }),
      ...(max !== undefined && { maximum: max }),
    }),
  },
  texts: {
    read(value, { min = 0 }) {
      const fits =
        Array.isArray(value) && value.length >= min && value.every((one) => typeof one === 'string');
      return fits ? value : undefined;
    },
    wanted: ({ min }) => `a list of texts${min === undefined ? '' : `, at least ${min}`}`,
    schema: ({ description, min }) => ({
      type: 'array',
      items: { type: 'string' },
      description,
      ...(min !== undefined && { minItems: min }),
    }),
  },
  object: {
    read: (value) => (isRecord(value) ? value : parsedObject(value)),
    wanted: () => 'an object',
    schema: ({ description }) => ({ type: 'object', description }),
  },
};

function parsedObject(value: unknown): unknown {
  if (typeof value !== 'string') return undefined;
  try {
    const parsed: unknown = JSON.parse(value);
    return isRecord(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function jsonSchema(entries: readonly (readonly [string, Field])[]): JsonSchema {
  const properties = Object.fromEntries(
    entries.map(([key, field]) => [key, KINDS[field.type].schema(field)]),
  );
  const required = entries
    .filter(([, field]) => !field.optional && field.default === undefined)
    .map(([key]) => key);
  return deepFreeze({ type: 'object', properties, required, additionalProperties: false });
}
