/** Input schemas for the tools this package brings itself: Standard Schemas without a schema library. */
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

/** A flat object with these properties; others are refused, for a misspelt one would be ignored silently. */
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
        if (!isObject(value)) return { issues: [{ message: 'Expected an object.' }] };
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
          const read = readField(field, given);
          if (read === undefined) issues.push({ path: [key], message: `Expected ${wanted(field)}.` });
          else out[key] = read;
        }
        return issues.length > 0 ? { issues } : { value: out as T };
      },
      jsonSchema: Object.freeze({ input: () => shown as Record<string, unknown> }),
    }),
  });
}

/** The value as the tool gets it; undefined when it does not fit. */
function readField(
  { type, min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER }: Field,
  value: unknown,
): unknown {
  switch (type) {
    case 'text':
      return typeof value === 'string' ? value : undefined;
    case 'integer':
      return Number.isInteger(value) && (value as number) >= min && (value as number) <= max
        ? value
        : undefined;
    case 'texts':
      return Array.isArray(value) && value.length >= min && value.every((one) => typeof one === 'string')
        ? value
        : undefined;
    case 'object':
      return isObject(value) ? value : parsedObject(value);
  }
}

function parsedObject(value: unknown): unknown {
  if (typeof value !== 'string') return undefined;
  try {
    const parsed: unknown = JSON.parse(value);
    return isObject(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function wanted({ type, min, max }: Field): string {
  switch (type) {
    case 'text':
      return 'text';
    case 'integer':
      return `an integer${min === undefined ? '' : ` ≥ ${min}`}${max === undefined ? '' : ` and ≤ ${max}`}`;
    case 'texts':
      return `a list of texts${min === undefined ? '' : `, at least ${min}`}`;
    case 'object':
      return 'an object';
  }
}

function jsonSchema(entries: readonly (readonly [string, Field])[]): JsonSchema {
  const properties = Object.fromEntries(entries.map(([key, field]) => [key, propertySchema(field)]));
  const required = entries
    .filter(([, field]) => !field.optional && field.default === undefined)
    .map(([key]) => key);
  return deepFreeze({ type: 'object', properties, required, additionalProperties: false });
}

function propertySchema({ type, description, oneOf, min, max }: Field): object {
  switch (type) {
    case 'text':
      return { type: 'string', description, ...(oneOf && { enum: [...oneOf] }) };
    case 'integer':
      return {
        type: 'integer',
        description,
        ...(min !== undefined && { minimum: min }),
        ...(max !== undefined && { maximum: max }),
      };
    case 'texts':
      return {
        type: 'array',
        items: { type: 'string' },
        description,
        ...(min !== undefined && { minItems: min }),
      };
    case 'object':
      return { type: 'object', description };
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
