/** Fills the arguments of a call from the values of a message, by the JSON Schema of the tool. */
import type { JsonSchema } from '../../kernel/model.js';
import type { Task } from './task.js';
import { EMAIL, URL_TEXT, type Value, type Values } from './values.js';

export interface Filled {
  readonly args: Readonly<Record<string, unknown>>;
  /** Required, and nowhere to be found. */
  readonly missing: readonly string[];
  /** The argument that got a name (of a place, of a person); `only`: no other one is required. */
  readonly named: { readonly key: string; readonly only: boolean } | undefined;
}

export function fill(schema: JsonSchema, values: Values, task: Task): Filled {
  const filler = new Filler(values, task);
  const args = filler.object(schema, '');
  const required = (schema.required ?? []) as readonly string[];
  return {
    args,
    missing: filler.missing,
    named: filler.named === undefined ? undefined : { key: filler.named, only: required.length === 1 },
  };
}

/** Names of arguments that take a text of any length. */
const LONG = /^(text|body|message|content|note|query|question|prompt|input|q|search|topic|task)$/i;
/** Of those, the ones that take what was found out before. */
const PASSED_ON = /^(text|body|message|content|note)$/i;

class Filler {
  readonly missing: string[] = [];
  named: string | undefined;
  readonly #used = new Set<unknown>();
  /** How many values at the front of a list are taken: a long one is not gone through again for each of them. */
  readonly #front = new Map<readonly unknown[], number>();

  constructor(
    readonly values: Values,
    readonly task: Task,
  ) {}

  object(schema: JsonSchema, path: string): Record<string, unknown> {
    const properties = (schema.properties ?? {}) as Record<string, Subschema>;
    const required = new Set((schema.required ?? []) as readonly string[]);
    const args: Record<string, unknown> = {};
    // Required ones first: they are the first to choose.
    const keys = Object.keys(properties).sort((a, b) => Number(required.has(b)) - Number(required.has(a)));
    for (const key of keys) {
      const where = path === '' ? key : `${path}.${key}`;
      const value = this.value(properties[key]!, key, where, required.has(key));
      if (value !== undefined) args[key] = value;
      else if (required.has(key)) this.missing.push(where);
    }
    return args;
  }

  value(given: Subschema, key: string, path: string, required: boolean): unknown {
    const schema = plain(given);
    if ('const' in schema) return schema.const;
    if (Array.isArray(schema.enum))
      return this.choice(schema.enum) ?? (required ? schema.default : undefined);
    const found = this.byType(schema, key, path, required);
    return found === undefined && required ? schema.default : found;
  }

  private byType(schema: JsonSchema, key: string, path: string, required: boolean): unknown {
    switch (schema.type) {
      case 'number':
      case 'integer':
        return this.take(this.values.numbers, required, (value) => inRange(schema, value));
      case 'boolean':
        return this.flag(key) ?? (required && !('default' in schema) ? false : undefined);
      case 'array':
        return this.list(plain((schema.items ?? true) as Subschema), key, required);
      case 'object':
        return required ? this.object(schema, path) : undefined;
      case 'string':
        return this.text(schema, key, required);
      default:
        return undefined;
    }
  }

  /** A value of the enum that stands in the message as a word. */
  private choice(choices: readonly unknown[]): unknown {
    const inText = (text: string) =>
      choices.find((choice) =>
        new RegExp(`(?<![\\p{L}\\p{N}])${escaped(String(choice))}(?![\\p{L}\\p{N}])`, 'iu').test(text),
      );
    return inText(this.values.clause) ?? inText(this.values.text);
  }

  /** Named in the message: true, or false after "no", "not" or "without". */
  private flag(key: string): boolean | undefined {
    const found = new RegExp(`(\\b(?:no|not|without)\\s+)?\\b${escaped(key)}\\b`, 'i').exec(this.values.text);
    return found ? found[1] === undefined : undefined;
  }

  private list(items: JsonSchema, key: string, required: boolean): unknown {
    const list: unknown[] = [];
    let taken: number;
    do {
      taken = this.#used.size;
      const value =
        this.value(items, key, key, false) ??
        (items.type === 'string' ? this.take(this.values.names, true) : undefined);
      if (value !== undefined) list.push(value);
      // What takes nothing from the message, such as a constant, would come again for ever.
    } while (this.#used.size > taken);
    return list.length > 0 || required ? list : undefined;
  }

  private text(schema: JsonSchema, key: string, required: boolean): string | undefined {
    const { emails, urls, dates, quoted, clause } = this.values;
    if (schema.format === 'email' || /mail|^to$|recipient/i.test(key))
      return this.take(emails, required) ?? (required ? this.inResults(EMAIL) : undefined);
    if (schema.format === 'uri' || /url|link/i.test(key))
      return this.take(urls, required) ?? (required ? this.inResults(URL_TEXT) : undefined);
    if (schema.format === 'date' || /date/i.test(key)) return this.take(dates, required);
    const quotation = this.take(quoted, required);
    if (quotation !== undefined || !required) return quotation;
    if (LONG.test(key)) return (PASSED_ON.test(key) && this.task.results.at(-1)?.text) || clause.trim();
    return this.name(key);
  }

  private name(key: string): string | undefined {
    const name = this.take(this.values.names, true);
    if (name !== undefined) this.named = key;
    return name;
  }

  /** The next one that nobody took. What is not required takes nothing from the parts of other tools. */
  private take<T>(
    list: readonly Value<T>[],
    anywhere: boolean,
    fits: (value: T) => boolean = () => true,
  ): T | undefined {
    let at = this.#front.get(list) ?? 0;
    while (at < list.length && this.#used.has(list[at])) at++;
    this.#front.set(list, at);
    for (; at < list.length; at++) {
      const one = list[at]!;
      if (!(anywhere || one.own) || this.#used.has(one) || !fits(one.value)) continue;
      this.#used.add(one);
      return one.value;
    }
    return undefined;
  }

  private inResults(pattern: RegExp): string | undefined {
    return this.task.results
      .map(({ text }) => text.match(pattern)?.[0])
      .findLast((match) => match !== undefined);
  }
}

/** Inside a schema, `true` and `false` are schemas, too. */
export type Subschema = JsonSchema | boolean;

/** A choice of types stands for the first that is not null. `true` and `false` say nothing about a value. */
function plain(schema: Subschema): JsonSchema {
  if (typeof schema === 'boolean') return {};
  const choices = (schema.anyOf ?? schema.oneOf) as readonly Subschema[] | undefined;
  if (choices) return plain(choices.find((one) => typeof one === 'boolean' || one.type !== 'null') ?? true);
  if (Array.isArray(schema.type)) return { ...schema, type: schema.type.find((type) => type !== 'null') };
  return schema.type === undefined && schema.properties ? { ...schema, type: 'object' } : schema;
}

function inRange(schema: JsonSchema, value: number): boolean {
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum } = schema as Record<string, number>;
  if (schema.type === 'integer' && !Number.isInteger(value)) return false;
  return (
    value >= (minimum ?? Number.NEGATIVE_INFINITY) &&
    value > (exclusiveMinimum ?? Number.NEGATIVE_INFINITY) &&
    value <= (maximum ?? Number.POSITIVE_INFINITY) &&
    value < (exclusiveMaximum ?? Number.POSITIVE_INFINITY)
  );
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
