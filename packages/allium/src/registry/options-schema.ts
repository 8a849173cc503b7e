/**
 * Checks options against the schema that a plugin declares: any Standard Schema, or the plain part of JSON Schema.
 */
import { FOREIGN_AGENT } from '../agent/foreign-agent.js';
import { FOREIGN_LIMITS } from '../compose/foreign-run.js';
import { closestName, invalidOption, shown } from '../kernel/lib/errors.js';
import { FOREIGN_SETTINGS, type Foreign, foreignName } from '../kernel/lib/foreign-names.js';
import type { JsonSchema } from '../kernel/messages/model.js';
import { isStandardSchema, type StandardSchema } from '../kernel/messages/standard-schema.js';

/**
 * The schema of options. These words of JSON Schema are understood: `type`, `enum`, `const`, `properties`,
 * `required`, `additionalProperties`, `items`, `minItems`, `anyOf`, `minimum`, `exclusiveMinimum`, `maximum`,
 * `minLength`, `pattern`. Others are for editors.
 */
export type OptionsSchema = StandardSchema | JsonSchema;

export interface OptionIssue {
  /** Where it is, from the options down. */
  readonly path: readonly (string | number)[];
  /** A sentence that names the option, what it takes and what it was given. */
  readonly message: string;
}

export type CheckedOptions =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: readonly [OptionIssue, ...OptionIssue[]] };

/** Checks a value; a Standard Schema may also change it. Never throws because of the value. */
export async function checkOptionsSchema(schema: OptionsSchema, value: unknown): Promise<CheckedOptions> {
  checkSchema('schema', schema);
  if (!isStandardSchema(schema)) {
    const [first, ...rest] = issuesOf(schema, value, []);
    return first ? { issues: [first, ...rest] } : { value };
  }
  const result = await schema['~standard'].validate(value);
  if (!result.issues) return { value: result.value };
  const [first, ...rest] = result.issues.map(({ message, path = [] }): OptionIssue => {
    const steps = path.map((step) => (typeof step === 'object' ? step.key : step)) as (string | number)[];
    return { path: steps, message: `Wrong \`${written(steps)}\`: ${message}` };
  });
  return { issues: [first ?? { path: [], message: 'The schema refuses these options.' }, ...rest] };
}

/** Throws if it isn't a schema at all. */
export function checkSchema(option: string, schema: unknown): void {
  if (!isRecord(schema) && !isStandardSchema(schema))
    throw invalidOption(option, 'a Standard Schema or a JSON Schema', schema);
}

type Path = readonly (string | number)[];

function issuesOf(schema: JsonSchema, value: unknown, path: Path): OptionIssue[] {
  const choices = schema.anyOf as readonly JsonSchema[] | undefined;
  if (choices) {
    const tried = choices.map((choice) => issuesOf(choice, value, path));
    if (tried.some((issues) => issues.length === 0)) return [];
    // The alternative that got deepest was probably meant. If none did, all of them are named.
    const deepest = tried.find((issues) => issues.some((issue) => issue.path.length > path.length));
    return deepest ?? [wrong(path, choices.map(wanted).join(' or '), value)];
  }
  if (!fits(schema, value)) return [wrong(path, wanted(schema), value)];
  if (Array.isArray(value)) {
    const items = schema.items as JsonSchema | undefined;
    return items ? value.flatMap((item, index) => issuesOf(items, item, [...path, index])) : [];
  }
  return isRecord(value) ? memberIssues(schema, value, path) : [];
}

function memberIssues(schema: JsonSchema, value: Record<string, unknown>, path: Path): OptionIssue[] {
  const {
    properties = {},
    required = [],
    additionalProperties = true,
  } = schema as {
    properties?: Record<string, JsonSchema>;
    required?: readonly string[];
    additionalProperties?: boolean | JsonSchema;
  };
  const issues: OptionIssue[] = [];
  for (const key of required)
    if (value[key] === undefined)
      issues.push(wrong([...path, key], wanted(properties[key] ?? {}), undefined));
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const own = Object.hasOwn(properties, key) ? properties[key] : additionalProperties;
    if (own === false) issues.push(unknown([...path, key], Object.keys(properties)));
    else if (typeof own === 'object') issues.push(...issuesOf(own, member, [...path, key]));
  }
  return issues;
}

function unknown(path: Path, known: readonly string[]): OptionIssue {
  const name = String(path.at(-1));
  const here = foreignName(foreignTo(path, known), name);
  const near = closestName(name, known);
  const hint = here ? ` Here that is \`${here}\`.` : near ? ` Did you mean \`${near}\`?` : '';
  const message = `Unknown option \`${written(path)}\`.${hint} It takes: ${known.join(', ') || 'nothing'}.`;
  return { path, message };
}

/** What other libraries call the options at this place, if they are those of an agent. */
function foreignTo(path: Path, known: readonly string[]): Foreign {
  if (path.at(-2) === 'limits') return FOREIGN_LIMITS;
  if (path.at(-2) === 'settings') return FOREIGN_SETTINGS;
  return known.includes('systemPrompt') ? FOREIGN_AGENT : {};
}

function wrong(path: Path, expected: string, value: unknown): OptionIssue {
  return {
    path,
    message: `Expected \`${written(path) || 'options'}\` to be ${expected}, got ${shown(value)}.`,
  };
}

function fits(schema: JsonSchema, value: unknown): boolean {
  const {
    type,
    enum: choices,
    minimum,
    exclusiveMinimum,
    maximum,
    minLength,
    minItems,
    pattern,
  } = schema as Words;
  if (choices && !choices.includes(value)) return false;
  if ('const' in schema && value !== schema.const) return false;
  if (type !== undefined && ![type].flat().some((one) => isOf(one, value))) return false;
  if (typeof value === 'number') {
    if (minimum !== undefined && !(value >= minimum)) return false;
    if (exclusiveMinimum !== undefined && !(value > exclusiveMinimum)) return false;
    if (maximum !== undefined && !(value <= maximum)) return false;
  }
  if (typeof value === 'string') {
    if (minLength !== undefined && value.length < minLength) return false;
    if (pattern !== undefined && !new RegExp(pattern, 'u').test(value)) return false;
  }
  return !(Array.isArray(value) && minItems !== undefined && value.length < minItems);
}

interface Words {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly minItems?: number;
  readonly pattern?: string;
}

function isOf(type: string, value: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'array') return Array.isArray(value);
  if (type === 'null') return value === null;
  if (type === 'object') return isRecord(value);
  // The other type names of JSON Schema are those of typeof.
  return typeof value === type;
}

/** What a schema asks for, in words. */
function wanted(schema: JsonSchema): string {
  const {
    type,
    enum: choices,
    minimum,
    exclusiveMinimum,
    maximum,
    minLength,
    minItems,
    pattern,
  } = schema as Words;
  if (schema.anyOf) return (schema.anyOf as readonly JsonSchema[]).map(wanted).join(' or ');
  if (choices) return choices.map((choice) => JSON.stringify(choice)).join(' or ');
  if ('const' in schema) return JSON.stringify(schema.const);
  const words = [type ?? 'something'].flat().map((one) => WORDS[one] ?? one);
  if (type === 'string' && minLength === 1 && pattern === undefined) return 'non-empty text';
  const bounds = [
    minimum !== undefined && `≥ ${minimum}`,
    exclusiveMinimum !== undefined && `> ${exclusiveMinimum}`,
    maximum !== undefined && `≤ ${maximum}`,
    minLength !== undefined && `of at least ${minLength} characters`,
    minItems !== undefined && `of at least ${minItems}`,
    pattern !== undefined && `that matches ${pattern}`,
  ].filter(Boolean);
  return [words.join(' or '), bounds.join(' and ')].filter(Boolean).join(' ');
}

const WORDS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  integer: 'an integer',
  boolean: 'true or false',
  array: 'a list',
  object: 'a table of options',
};

/** `['tools', 0, 'name']` → `tools[0].name`. */
export function written(path: Path): string {
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))
    .join('')
    .replace(/^\./, '');
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
