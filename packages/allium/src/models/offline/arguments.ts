/** Fills the arguments of a call from the values of a message, by the JSON Schema of the tool. */
import type { JsonSchema } from '../../index.js';
import { choicesOf, FORMATS, fitsNumber, fitsText, itemsOf, type Subschema, whole } from './schema.js';
import type { Task } from './task.js';
import { EMAIL, URL_TEXT, type Value, type Values } from './values.js';

export interface Filled {
  readonly args: Readonly<Record<string, unknown>>;
  /** Required, but nowhere to be found. */
  readonly missing: readonly string[];
  /** The argument that got a name (of a place, of a person). `only`: no other one is required. */
  readonly named: { readonly key: string; readonly only: boolean } | undefined;
}

export function fill(schema: JsonSchema, values: Values, task: Task): Filled {
  const filler = new Filler(schema, values, task);
  const { args, required } = filler.root();
  return {
    args,
    missing: filler.missing,
    named: filler.named === undefined ? undefined : { key: filler.named, only: required.length === 1 },
  };
}

/** Names of arguments that take a text of any length. */
const LONG = /^(text|body|message|content|note|query|question|prompt|input|q|search|topic|task)$/i;
/** Those of them that take what was found out before. */
const PASSED_ON = /^(text|body|message|content|note)$/i;
/** How deep objects and lists may nest: schemas that refer to themselves can ask for any depth. */
const DEEPEST_NESTING = 8;
/**
 * How many objects and lists may come out empty, or take nothing from the message: those that branch would be
 * millions.
 */
const MOST_IN_VAIN = 1000;
/** How many items of a list may take nothing from the message, such as constants. */
const MOST_CONSTANTS = 100;

class Filler {
  readonly missing: string[] = [];
  named: string | undefined;
  readonly #used = new Set<unknown>();
  /** What is in `#used`, in the order in which it was taken. */
  readonly #taken: unknown[] = [];
  /** How many values at the front of a list are taken, so that a long one is not searched again for each of them. */
  readonly #front = new Map<readonly unknown[], number>();
  /** The objects and lists around the current place, and how much had been taken before each. */
  readonly #inside = new Map<unknown, number>();
  #depth = 0;
  #inVain = 0;

  constructor(
    readonly schema: JsonSchema,
    readonly values: Values,
    readonly task: Task,
  ) {}

  root(): { readonly args: Record<string, unknown>; readonly required: readonly string[] } {
    const choices = choicesOf(whole(this.schema, this.schema), this.schema);
    for (const choice of choices) {
      const args = choices.length > 1 ? this.attempt(() => this.object(choice, '')) : undefined;
      if (args !== undefined) return { args, required: requiredOf(choice) };
    }
    const first = choices[0] ?? {};
    return { args: this.object(first, ''), required: requiredOf(first) };
  }

  object(schema: JsonSchema, path: string): Record<string, unknown> {
    const properties = (schema.properties ?? {}) as Record<string, Subschema>;
    const others = (schema.additionalProperties ?? true) as Subschema;
    const required = new Set(requiredOf(schema));
    const args: Record<string, unknown> = {};
    // Required ones first: they get the first choice. Those of a record are not properties.
    const known = new Set([...Object.keys(properties), ...required]);
    const keys = [...known].sort((a, b) => Number(required.has(b)) - Number(required.has(a)));
    for (const key of keys) {
      const where = path === '' ? key : `${path}.${key}`;
      const given = Object.hasOwn(properties, key) ? properties[key]! : others;
      const value = this.value(given, key, where, required.has(key));
      if (value !== undefined) args[key] = value;
      else if (required.has(key)) this.missing.push(where);
    }
    return args;
  }

  value(given: Subschema, key: string, path: string, required: boolean): unknown {
    const schema = whole(given, this.schema);
    const choices = choicesOf(schema, this.schema);
    if (choices.length === 1 && 'const' in choices[0]!) return choices[0].const;
    const words = choices.flatMap(namedBy);
    const nullable = words.includes(null) || choices.some(({ type }) => type === 'null');
    const found = this.choice(words) ?? this.firstOf(choices, key, path, required, nullable);
    if (found !== undefined || !required) return found;
    if ('default' in schema) return schema.default;
    return nullable ? null : undefined;
  }

  /** Uses the first of the choices for which there is something. */
  private firstOf(
    choices: readonly JsonSchema[],
    key: string,
    path: string,
    required: boolean,
    nullable: boolean,
  ): unknown {
    const open = choices.filter((choice) => namedBy(choice).length === 0);
    if (open.length === 1 && !nullable) return this.byType(open[0]!, key, path, required);
    for (const choice of open) {
      const before = this.#taken.length;
      const found = this.attempt(() => {
        const made = this.byType(choice, key, path, required);
        // If null will do, prefer it to an empty object or list: a schema that contains itself would never end.
        const hollow = nullable && typeof made === 'object' && this.#taken.length === before;
        return hollow ? undefined : made;
      });
      if (found !== undefined) return found;
    }
    return undefined;
  }

  private byType(schema: JsonSchema, key: string, path: string, required: boolean): unknown {
    switch (schema.type) {
      case 'number':
      case 'integer':
        return this.take(this.values.numbers, required, (value) => fitsNumber(schema, value));
      case 'boolean':
        return this.flag(key) ?? (required && !('default' in schema) ? false : undefined);
      case 'array':
        return this.within(schema.items ?? schema.prefixItems, () =>
          this.attempt(() => this.list(schema, key, required)),
        );
      case 'object':
        return required ? this.within(schema.properties, () => this.nested(schema, path)) : undefined;
      case 'string':
        return this.text(schema, key, required);
      default:
        return undefined;
    }
  }

  private nested(schema: JsonSchema, path: string): unknown {
    const args = this.object(schema, path);
    return Object.keys(args).length >= ((schema.minProperties as number | undefined) ?? 0) ? args : undefined;
  }

  /** What `make` finds in an object or list. It may contain itself only with something more from the message. */
  private within(place: unknown, make: () => unknown): unknown {
    const [taken, before] = [this.#taken.length, this.#inside.get(place)];
    const again = typeof place === 'object' && before === taken;
    if (again || this.#depth === DEEPEST_NESTING || this.#inVain >= MOST_IN_VAIN) return undefined;
    this.#depth++;
    this.#inside.set(place, taken);
    const made = make();
    if (before === undefined) this.#inside.delete(place);
    else this.#inside.set(place, before);
    this.#depth--;
    if (this.#taken.length === taken) this.#inVain++;
    return made;
  }

  /** What `make` finds. If it lacks something, nothing was taken and nothing is missing. */
  private attempt<T>(make: () => T | undefined): T | undefined {
    const [taken, lacking, named] = [this.#taken.length, this.missing.length, this.named];
    const made = make();
    if (made !== undefined && this.missing.length === lacking) return made;
    const back = this.#taken.splice(taken);
    for (const value of back) this.#used.delete(value);
    if (back.length > 0) {
      this.#front.clear();
      this.#inVain++;
    }
    this.missing.length = lacking;
    this.named = named;
    return undefined;
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

  private list(schema: JsonSchema, key: string, required: boolean): unknown {
    const { places, rest } = itemsOf(schema);
    const { minItems = places.length, maxItems = Number.POSITIVE_INFINITY } = schema as Record<
      string,
      number | undefined
    >;
    const list: unknown[] = [];
    const seen = new Set<string>();
    const most = Math.max(Math.min(minItems, MOST_CONSTANTS), places.length);
    while (list.length < maxItems) {
      const taken = this.#taken.length;
      const value = this.item(places[list.length] ?? rest, key, required && list.length < minItems);
      if (value === undefined) break;
      const text = schema.uniqueItems === true ? JSON.stringify(value) : undefined;
      const again = text !== undefined && seen.has(text);
      if (text !== undefined) seen.add(text);
      if (!again) list.push(value);
      // Something that takes nothing from the message, such as a constant, would repeat forever.
      if (this.#taken.length === taken && (again || list.length >= most)) break;
    }
    return list.length >= minItems && (list.length > 0 || required) ? list : undefined;
  }

  private item(given: Subschema, key: string, required: boolean): unknown {
    const { named } = this;
    const found = this.attempt(() => this.value(given, key, key, required));
    // Several names are several items, not several calls.
    this.named = named;
    const schema = whole(given, this.schema);
    if (found !== undefined || schema.type !== 'string') return found;
    return this.take(this.values.names, true, (value) => fitsText(schema, value));
  }

  private text(schema: JsonSchema, key: string, required: boolean): string | undefined {
    const { emails, urls, dates, quoted, words, clause } = this.values;
    const fits = (value: string) => fitsText(schema, value);
    const format = FORMATS.has(schema.format) ? schema.format : formatOf(key);
    if (format === 'email')
      return this.take(emails, required, fits) ?? (required ? this.inResults(EMAIL, fits) : undefined);
    if (format === 'uri')
      return this.take(urls, required, fits) ?? (required ? this.inResults(URL_TEXT, fits) : undefined);
    if (format === 'date') return this.take(dates, required, fits);
    const quotation = this.take(quoted, required, fits);
    if (quotation !== undefined) return quotation;
    if (format !== undefined) return this.take(words, required, fits);
    if (!required) return undefined;
    const passed = PASSED_ON.test(key) ? this.task.results.at(-1)?.text : undefined;
    if (LONG.test(key)) return [passed || clause.trim(), clause.trim()].find(fits);
    return this.name(key, fits) ?? (schema.pattern === undefined ? undefined : this.take(words, true, fits));
  }

  private name(key: string, fits: (value: string) => boolean): string | undefined {
    const name = this.take(this.values.names, true, fits);
    if (name !== undefined) this.named = key;
    return name;
  }

  /**
   * The next value that is not taken. An argument that isn't required takes nothing from the parts of other tools.
   */
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
      this.#taken.push(one);
      return one.value;
    }
    return undefined;
  }

  private inResults(pattern: RegExp, fits: (value: string) => boolean): string | undefined {
    return this.task.results
      .map(({ text }) => text.match(pattern)?.find(fits))
      .findLast((match) => match !== undefined);
  }
}

function requiredOf(schema: JsonSchema): readonly string[] {
  return (schema.required ?? []) as readonly string[];
}

/** The values that a schema names. */
function namedBy(schema: JsonSchema): readonly unknown[] {
  return 'const' in schema ? [schema.const] : Array.isArray(schema.enum) ? schema.enum : [];
}

/** What the name of an argument says about it. */
function formatOf(key: string): string | undefined {
  if (/mail|^to$|recipient/i.test(key)) return 'email';
  if (/url|link/i.test(key)) return 'uri';
  return /date/i.test(key) ? 'date' : undefined;
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
