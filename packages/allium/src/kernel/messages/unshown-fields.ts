/** For schemas with fields that JSON Schema can't express: finds what a model may send instead, or names the field. */
import { isRecord } from '../lib/errors.js';
import type { StandardSchema } from './standard-schema.js';

/** The part of zod that is used: it asks about every schema it has no JSON Schema for. */
interface Unrepresentable {
  readonly zodSchema: {
    readonly _zod?: { readonly def?: { readonly type?: string; readonly coerce?: boolean } };
  };
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** The JSON input that these accept: `z.coerce.date()` accepts text, for example. */
const COERCED: Readonly<Record<string, object>> = {
  date: { type: 'string', format: 'date-time' },
  bigint: { type: 'string', pattern: '^-?[0-9]+$' },
};

/** Converts again with what coerced fields accept. Throws if another field has no JSON Schema. */
export function coercedByZod(
  convert: (libraryOptions: Record<string, unknown>) => object,
): object | undefined {
  let asked = false;
  const unrepresentable = ({ zodSchema, path, message }: Unrepresentable): object => {
    asked = true;
    const { type = '', coerce } = zodSchema._zod?.def ?? {};
    const accepted = coerce ? COERCED[type] : undefined;
    if (!accepted) throw new TypeError(unshown(pathIn(path), message));
    return accepted;
  };
  const made = convert({ unrepresentable });
  // Older versions don't ask, and would show the model a field that accepts anything.
  return asked ? made : undefined;
}

const MARK = 'x-unshown';

/**
 * For a type that JSON lacks, arktype would show the model a field that accepts anything. Throws for such a field.
 */
export function shownByArktype(convert: (libraryOptions: Record<string, unknown>) => object): object {
  const marked = (what: unknown): object => ({ [MARK]: what });
  const fallback = {
    date: () => marked('Date'),
    domain: ({ domain }: { readonly domain: string }) => marked(domain),
    proto: ({ proto }: { readonly proto: { readonly name: string } }) => marked(proto.name),
  };
  const made = convert({ fallback });
  const found = markIn(made, []);
  if (!found) return made;
  const what = `${found.what} cannot be represented in JSON Schema`;
  throw new TypeError(unshown(pathIn(found.path), what, "'string.date.parse', or type('string').pipe(…)"));
}

function markIn(
  schema: unknown,
  path: readonly string[],
): { path: readonly string[]; what: unknown } | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined;
  if (MARK in schema) return { path, what: schema[MARK] };
  for (const [key, part] of Object.entries(schema)) {
    const found = markIn(part, [...path, key]);
    if (found) return found;
  }
  return undefined;
}

/** The error message about a field. `how`: how to convert with its library. */
export function unshown(
  field: string,
  message: string,
  how = 'z.coerce.date(), or z.string().transform(…)',
): string {
  const what = message.replace(/\.$/, '');
  const where = field === '' ? what : `field \`${field}\`: ${what}`;
  return `${where}. A model sends JSON. Describe the text, number, list or object that it sends, and convert that: ${how}. Or write the JSON Schema yourself, in \`toJsonSchema\`.`;
}

/** `['properties', 'trips', 'items', 'properties', 'start']` → `trips[].start`. */
function pathIn(steps: readonly (string | number)[]): string {
  let path = '';
  for (let i = 0; i < steps.length; i++) {
    const step = steps[i]!;
    if (step === 'properties') path += `${path && '.'}${steps[++i]}`;
    else if (step === 'items') path += '[]';
    else if (step === 'prefixItems') path += `[${steps[++i]}]`;
    else if (step === 'additionalProperties') path += `${path && '.'}*`;
  }
  return path;
}

/**
 * For libraries that don't say where they failed: finds the first field that can't be converted on its own. `above`: the
 * schemas it is inside. One that refers to them fails because of another field; for that, it is undefined.
 */
export function failingField(
  schema: unknown,
  convert: (schema: StandardSchema) => object,
  path = '',
  above: readonly unknown[] = [],
): string | undefined {
  if (above.includes(schema)) return undefined;
  if (!isRecord(schema)) return path;
  // The names that valibot and zod use.
  const { entries, shape, item, element, wrapped } = schema;
  const named = isRecord(entries) ? entries : isRecord(shape) ? shape : {};
  const fields = Object.entries(named).map(
    ([name, field]) => [field, `${path && `${path}.`}${name}`] as const,
  );
  const inner = [[item ?? element, `${path}[]`] as const, [wrapped, path] as const];
  let refersBack = false;
  for (const [part, where] of [...fields, ...inner]) {
    if (!isRecord(part)) continue;
    try {
      convert(part as unknown as StandardSchema);
    } catch {
      const found = failingField(part, convert, where, [...above, schema]);
      if (found !== undefined) return found;
      refersBack = true;
    }
  }
  return refersBack ? undefined : path;
}
