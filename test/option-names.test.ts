// Options that take numbers are named as docs/reference/option-names.md says, in every middleware.

import { readFileSync } from 'node:fs';
import { optionsSchemaOf, registered } from 'allium/registry';
import { describe, expect, it } from 'vitest';

interface Shape {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly anyOf?: readonly Shape[];
  readonly additionalProperties?: Shape | boolean;
}

const page = readFileSync(new URL('../docs/reference/option-names.md', import.meta.url), 'utf8');
const rows = page.split('|---|---|---|\n')[1]!.split('\n\n')[0]!.split('\n');
const named = rows.flatMap((row) => [...row.split('|')[1]!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!));

function fits(option: string, name: string): boolean {
  if (name.endsWith('…')) return new RegExp(`^${name.slice(0, -1)}[A-Z]`).test(option);
  return name.startsWith('…') ? option.endsWith(name.slice(1)) : option === name;
}

/** A number, or numbers by name. */
function isNumeric({ type, anyOf = [], additionalProperties }: Shape): boolean {
  if (type === 'number' || type === 'integer' || anyOf.some(isNumeric)) return true;
  return typeof additionalProperties === 'object' && isNumeric(additionalProperties);
}

const optionsOf = (shape: Shape) => Object.entries(shape.properties ?? {});
const MIDDLEWARE: Readonly<Record<string, { readonly shape: Shape }>> = Object.fromEntries(
  await Promise.all(
    registered('middleware').map(async ({ name }) => [
      name,
      { shape: (await optionsSchemaOf('middleware', name)) as Shape },
    ]),
  ),
);

describe('options that take numbers', () => {
  it.each(Object.entries(MIDDLEWARE))('of %s are named by the table', (middleware, { shape }) => {
    const numeric = optionsOf(shape).flatMap(([name, one]) => (isNumeric(one) ? [name] : []));
    expect(numeric.filter((option) => !named.some((name) => fits(option, name)))).toEqual([]);
    // A rate says of what time. A bound that the middleware is named after is no rate.
    if (numeric.includes('limit') && !middleware.startsWith('max-')) expect(numeric).toContain('perMs');
  });

  it('use every name of the table', () => {
    const all = Object.values(MIDDLEWARE).flatMap(({ shape }) =>
      optionsOf(shape).flatMap(([name, one]) => (isNumeric(one) ? [name] : [])),
    );
    expect(named.filter((name) => !all.some((option) => fits(option, name)))).toEqual([]);
  });

  it('are shown in examples that exist', () => {
    const examples = [...page.matchAll(/(\w+)\(\{ ([\w, ]+) \}\)/g)];
    expect(examples.length).toBeGreaterThan(10);
    for (const [, factory, options] of examples) {
      const folder = factory!.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      const known = optionsOf(MIDDLEWARE[folder]!.shape).map(([name]) => name);
      expect(known).toEqual(expect.arrayContaining(options!.split(', ')));
    }
  });
});
