// Writes packages/allium/src/registry/middleware-table.ts: how each middleware of the box is loaded, and the shape of
// its options for editors, read off its options type. A test keeps the file equal to what this makes.
//   node scripts/middleware-table.mjs

import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { commentOf, declarations, sourceAt } from './interfaces.mjs';
import { camelCase } from './layout.mjs';
import { alliumFolder } from './repository.mjs';
import { mustRun } from './run-command.mjs';

/** @typedef {Record<string, any>} Node A node of the syntax tree. */
/** @typedef {import('./interfaces.mjs').Source} Source */

export const tablePath = join(alliumFolder, 'src/registry/middleware-table.ts');
const folder = join(alliumFolder, 'src/middleware');

/** @returns {string} The file, before formatting. */
export function middlewareTable() {
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
  const lines = names.map((name) => {
    const factory = camelCase(name);
    const shape = JSON.stringify(shapeOf(name)).replaceAll('"@code"', 'code');
    return `  '${name}': {\n    load: async () => (await import('../middleware/${name}/index.js')).${factory},\n    shape: ${shape},\n  },`;
  });
  return `${header}\nexport const MIDDLEWARE: Readonly<Record<string, MiddlewareModule>> = {\n${lines.join('\n')}\n};\n`;
}

const header = `/** Written by scripts/middleware-table.mjs from the folders of src/middleware. Do not edit. */
import type { Middleware } from '../kernel/protocol/middleware.js';
import type { JsonSchema } from '../kernel/messages/model.js';

export interface MiddlewareModule {
  /** Imports the module and gives its factory. */
  readonly load: () => Promise<(options: never) => Middleware>;
  /** Of its options, for editors: the factory is what judges them. */
  readonly shape: JsonSchema;
}

/** An option that is code: a module of the user's, and the export in it. */
const code = {
  type: 'object',
  properties: { import: { type: 'string' }, name: { type: 'string' } },
  required: ['import'],
  additionalProperties: false,
} as const;
`;

/** JSON Schema of a factory's options, as far as its types tell. */
function shapeOf(/** @type {string} */ name) {
  const source = sourceAt(join(folder, name, 'index.ts'));
  const wanted = `${camelCase(name)}Options`.toLowerCase();
  const options = declarations(source.program).find(
    (/** @type {Node} */ node) =>
      node.type === 'TSInterfaceDeclaration' && node.id.name.toLowerCase() === wanted,
  );
  // Options without an interface of their own can be anything; the factory judges them.
  if (!options) return { type: 'object' };
  /** @type {Record<string, object>} */
  const properties = {};
  /** @type {string[]} */
  const required = [];
  const add = (/** @type {Node} */ members, /** @type {Source} */ from) => {
    for (const member of members.body.body) {
      const key = member.key.name;
      const schema = schemaOf(member.typeAnnotation.typeAnnotation, from);
      if (!schema) continue;
      if (!member.optional) required.push(key);
      properties[key] = described(schema, descriptionOf(member, from));
    }
  };
  add(options, source);
  // What every factory takes stands in one place.
  const named = options.extends?.some((/** @type {Node} */ one) => one.expression.name === 'NamedOptions');
  if (named) {
    const common = sourceAt(join(alliumFolder, 'src/kit/option-checks.ts'));
    const found = declarations(common.program).filter((node) => node.id?.name === 'NamedOptions');
    for (const members of found) add(members, common);
  }
  return {
    type: 'object',
    properties,
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  };
}

/** A text with its description; what is only code gets it beside. */
function described(/** @type {any} */ schema, /** @type {string} */ description) {
  if (description === '') return schema;
  return schema === '@code' ? { description, anyOf: ['@code'] } : { description, ...schema };
}

/** @returns {any} Undefined for what no file can say, such as a clock. */
function schemaOf(/** @type {Node} */ type, /** @type {Source} */ source) {
  switch (type.type) {
    case 'TSNumberKeyword':
      return { type: 'number' };
    case 'TSStringKeyword':
      return { type: 'string' };
    case 'TSBooleanKeyword':
      return { type: 'boolean' };
    case 'TSFunctionType':
      return '@code';
    case 'TSParenthesizedType':
      return schemaOf(type.typeAnnotation, source);
    case 'TSLiteralType':
      return { enum: [type.literal.value] };
    case 'TSTypeOperator':
      return schemaOf(type.typeAnnotation, source);
    case 'TSArrayType':
      return { type: 'array', items: schemaOf(type.elementType, source) ?? {} };
    case 'TSUnionType':
      return unionOf(type.types.map((/** @type {Node} */ one) => schemaOf(one, source)).filter(Boolean));
    case 'TSIndexedAccessType':
      return { enum: constantsOf(type.objectType, source) };
    case 'TSTypeReference':
      return referenceOf(type, source);
    default:
      return undefined;
  }
}

function unionOf(/** @type {any[]} */ choices) {
  const values = choices.flatMap((choice) => choice.enum ?? []);
  const others = [...new Set(choices.filter((choice) => !choice.enum))];
  const all = [...(values.length > 0 ? [{ enum: values }] : []), ...others];
  return all.length > 1 ? { anyOf: all } : all[0];
}

/** Named types: what has a meaning in a file, the rest is code (a store, a limiter) or left out (a clock). */
function referenceOf(/** @type {Node} */ type, /** @type {Source} */ source) {
  const name = type.typeName.name;
  const [first, second] = type.typeArguments?.params ?? [];
  if (name === 'Readonly') return schemaOf(first, source);
  if (name === 'Record') return { type: 'object', additionalProperties: schemaOf(second, source) ?? true };
  if (name === 'Price') return { type: 'object', additionalProperties: { type: 'number' } };
  if (name === 'RegExp' || name === 'Clock' || name === 'Pick') return undefined;
  return '@code';
}

/** The texts of `const NAMES = ['a', 'b'] as const`, for `(typeof NAMES)[number]`. */
function constantsOf(/** @type {Node} */ type, /** @type {Source} */ { program }) {
  const name = (type.typeAnnotation ?? type).exprName.name;
  const variables = declarations(program).flatMap((/** @type {Node} */ node) => node.declarations ?? []);
  const found = variables.find((/** @type {Node} */ variable) => variable.id.name === name);
  const list = found.init.expression ?? found.init;
  return list.elements.map((/** @type {Node} */ element) => element.value);
}

/** The JSDoc right before a member, for editors. */
function descriptionOf(/** @type {Node} */ member, /** @type {Source} */ source) {
  return commentOf(member, source)
    .replace(/Contract:.*$/, '')
    .replace(/\.? ?@default /, '. Default: ')
    .replace(/^\. /, '')
    .trim();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  writeFileSync(tablePath, middlewareTable());
  await mustRun('npx', ['biome', 'check', '--write', tablePath]);
}
