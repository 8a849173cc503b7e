/** Reveals secrets: as text, or as the number or switch that a schema asks for. */
import { Filled } from './filled.js';
import { isTable } from './interpolate.js';
import { Secret } from './secret.js';

type Schema = Readonly<Record<string, unknown>> | undefined;

/** A copy of `value` with every secret revealed. Anything but tables and lists passes through as it is. */
export function reveal(value: unknown, schema?: unknown): unknown {
  const shape = (typeof schema === 'object' && schema !== null ? schema : undefined) as Schema;
  if (value instanceof Secret) return typed(value.reveal(), shape);
  if (value instanceof Filled) return typed(value.text, shape);
  if (Array.isArray(value)) return value.map((item) => reveal(item, shape?.items));
  if (!isTable(value)) return value;
  const properties = (shape?.properties ?? {}) as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      key,
      reveal(member, Object.hasOwn(properties, key) ? properties[key] : shape?.additionalProperties),
    ]),
  );
}

/** The environment has only text. What can't be read as the wanted type stays text, and is refused as such. */
function typed(text: string, schema: Schema): unknown {
  const types = typesOf(schema);
  // Where a text would do as well, these two mean the switch.
  if (types.includes('boolean') && /^(true|false)$/.test(text)) return text === 'true';
  if (types.includes('string')) return text;
  const number = text.trim() === '' ? Number.NaN : Number(text);
  if ((types.includes('number') || types.includes('integer')) && !Number.isNaN(number)) return number;
  return text;
}

function typesOf(schema: Schema): readonly unknown[] {
  const choices = (schema?.anyOf ?? []) as readonly Schema[];
  return [schema?.type].flat().concat(choices.flatMap(typesOf));
}
