/** The input of tools this package brings itself: an object of texts, as a Standard Schema without a schema library. */
import type { SchemaIssue, StandardSchema } from './standard-schema.js';

export interface TextField {
  /** Shown to the model. */
  readonly description: string;
  /** What it is when it is left out. Without it the field is required. */
  readonly default?: string;
  /** Suggested to the model; others are let through. */
  readonly oneOf?: readonly string[];
}

/** Takes an object with these fields, all text. Others are ignored. */
export function textInput<Name extends string>(
  fields: Readonly<Record<Name, TextField>>,
): StandardSchema<Record<Name, string>> {
  const entries = Object.entries(fields) as [Name, TextField][];
  return {
    '~standard': {
      version: 1,
      vendor: 'allium',
      validate(value) {
        if (typeof value !== 'object' || value === null || Array.isArray(value))
          return { issues: [{ message: 'Expected an object.' }] };
        const given = value as Record<string, unknown>;
        const issues: SchemaIssue[] = [];
        const taken: Partial<Record<Name, string>> = {};
        for (const [name, field] of entries) {
          const text = Object.hasOwn(given, name) ? (given[name] ?? field.default) : field.default;
          if (typeof text === 'string') taken[name] = text;
          else issues.push({ message: 'Expected text.', path: [name] });
        }
        return issues.length > 0 ? { issues } : { value: taken as Record<Name, string> };
      },
      jsonSchema: {
        input: () => ({
          type: 'object',
          properties: Object.fromEntries(
            entries.map(([name, { description, oneOf }]) => [
              name,
              { type: 'string', description, ...(oneOf && { enum: [...oneOf] }) },
            ]),
          ),
          required: entries.filter(([, field]) => field.default === undefined).map(([name]) => name),
        }),
      },
    },
  };
}
