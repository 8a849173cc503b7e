/** Writes the answer from the results of the tools, or says why there is none. */
import type { JsonSchema, ModelRequest } from '../../index.js';
import { fill } from './arguments.js';
import type { Plan } from './plan.js';
import { type Subschema, Walk, whole } from './schema.js';
import { findValues } from './values.js';

const SIGNED = '(Written by fixed rules: this is the offline model of Allium, not a language model.)';

export function answerOf({ tools, settings }: ModelRequest, { task, lacking }: Plan): string {
  if (settings.responseSchema) return structured(settings.responseSchema, task);
  const lines = [
    ...task.results.map(({ tool, text, isError }) =>
      isError ? `${tool} failed: ${readable(text)}` : `${tool}: ${readable(text)}`,
    ),
    ...lacking.map(
      ({ name, missing }) =>
        `I would call ${name}, but I find nothing in your message for ${missing.map((key) => `\`${key}\``).join(', ')}.`,
    ),
  ];
  if (lines.length > 0) return `${lines.join('\n')}\n\n${SIGNED}`;
  const hint =
    tools.length === 0
      ? 'I have no tools.'
      : `I can call ${tools.map(({ name }) => name).join(', ')}: use the words of a name in your message.`;
  return `${SIGNED} You said: ${cut(task.text, 200)}\n\n${hint}`;
}

/** JSON results as `key value, key value`; text as it is. */
function readable(text: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return cut(text, 1000);
  }
  return cut(shown(value), 1000);
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return value.map(shown).join(', ');
  if (typeof value !== 'object' || value === null) return String(value);
  return Object.entries(value)
    .map(([key, member]) => `${key} ${shown(member)}`)
    .join(', ');
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** An answer that fits a schema, filled like arguments; what can't be found is empty. */
function structured(schema: JsonSchema, task: Plan['task']): string {
  const text = [task.text, ...task.results.map((result) => result.text)].join('\n');
  const { args } = fill(schema, findValues(text, { from: 0, to: text.length }), task);
  return JSON.stringify({ ...empty(whole(schema, schema), schema, new Walk()), ...args });
}

function empty(schema: JsonSchema, root: JsonSchema, walk: Walk): Record<string, unknown> {
  const properties = (schema.properties ?? {}) as Record<string, Subschema>;
  const required = (schema.required ?? []) as readonly string[];
  return Object.fromEntries(required.map((key) => [key, emptyValue(properties[key] ?? true, root, walk)]));
}

function emptyValue(given: Subschema, root: JsonSchema, walk: Walk): unknown {
  const schema = whole(given, root);
  if ('default' in schema) return schema.default;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  switch (schema.type) {
    case 'string':
      return '';
    case 'number':
    case 'integer':
      return schema.minimum ?? 0;
    case 'boolean':
      return false;
    case 'array':
      return [];
    case 'object':
      // Nothing fits a schema that has to contain itself.
      return walk.into(schema.properties ?? schema, null, () => empty(schema, root, walk));
    default:
      return null;
  }
}
