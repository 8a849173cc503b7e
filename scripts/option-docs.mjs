// What the sources say about the options of each middleware: the JSDoc of the fields in its `OPTIONS`.

import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { commentOf, declarations, interfaceOf, sourceAt } from './interfaces.mjs';
import { alliumFolder, root } from './repository.mjs';

/** @import { Node, Source } from './interfaces.mjs' */
/**
 * @typedef {object} OptionDoc
 * @property {string} name
 * @property {string} text
 * @property {string} default The text after `@default`.
 * @property {string} [type] The signature of an option that takes a function.
 */

const folder = join(alliumFolder, 'src/middleware');
const guardrailFolder = join(alliumFolder, '../guardrails/src');

/** @returns {string[]} The folders of the middleware, which are their names. */
export function middlewareNames() {
  return foldersIn(folder);
}

function foldersIn(/** @type {string} */ place) {
  return readdirSync(place, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
}

/** @returns {OptionDoc[]} The options of a middleware, in the order of its fields. */
export function optionDocs(/** @type {string} */ middleware) {
  return fieldsOf(join(folder, middleware, 'index.ts'), 'OPTIONS');
}

/**
 * @returns {Record<string, Record<string, string>>} A sentence or two for each option of each middleware, of `mcp` and of
 *   each guardrail, for editors.
 */
export function optionDescriptions() {
  const docs = middlewareNames().map((name) => ({ name, options: optionDocs(name) }));
  docs.push({ name: 'mcp', options: fieldsOf(join(root, 'packages/mcp/src/options.ts'), 'OPTIONS') });
  for (const name of foldersIn(guardrailFolder))
    if (existsSync(join(guardrailFolder, name, 'README.md')))
      docs.push({ name, options: fieldsOf(join(guardrailFolder, name, 'index.ts'), 'OPTIONS') });
  return Object.fromEntries(docs.map(({ name, options }) => [name, descriptionsOf(options)]));
}

function descriptionsOf(/** @type {OptionDoc[]} */ options) {
  return Object.fromEntries(options.map((option) => [option.name, descriptionOf(option)]));
}

function descriptionOf(/** @type {OptionDoc} */ { text, default: standard }) {
  const what = text.replace(/Contract:.*$/, '').trim();
  if (standard === '') return what;
  return what === '' ? `Default: ${standard}` : `${what.replace(/\.$/, '')}. Default: ${standard}`;
}

/** @returns {OptionDoc[]} */
function fieldsOf(/** @type {string} */ path, /** @type {string} */ constant) {
  const source = sourceAt(path);
  const variables = declarations(source.program).flatMap(
    (/** @type {Node} */ node) => node.declarations ?? [],
  );
  const found = variables.find((/** @type {Node} */ variable) => variable.id.name === constant);
  if (!found) throw new Error(`${path} has no constant ${constant}.`);
  return objectIn(found.init).properties.flatMap((/** @type {Node} */ member) =>
    member.type === 'SpreadElement' ? spreadIn(member.argument, source, path) : [docOf(member, source)],
  );
}

/** `{ … } satisfies Fields` → `{ … }` */
function objectIn(/** @type {Node} */ node) {
  return node.expression ?? node;
}

/** @returns {OptionDoc} */
function docOf(/** @type {Node} */ member, /** @type {Source} */ source) {
  const [text = '', standard = ''] = commentOf(member, source).split(/ ?@default /);
  const type = signatureIn(source.code.slice(member.value.start, member.value.end));
  return { name: member.key.name, text, default: standard, ...(type !== undefined && { type }) };
}

/** `kinds.func<(ctx: ToolContext, id: string) => string>()` → `(ctx, id) => string`. */
function signatureIn(/** @type {string} */ code) {
  const [, type] = /func<(\([\s\S]*)>\(\)/.exec(code) ?? [];
  const [, parameters, result] = /^\(([^()]*)\) => ([\s\S]+)$/.exec(type?.replace(/\s+/g, ' ') ?? '') ?? [];
  if (parameters === undefined) return undefined;
  const names = parameters.split(',').map((one) => one.split(':', 1)[0]?.trim());
  return `(${names.join(', ')}) => ${result}`;
}

/** Fields that several share: the name of a middleware, or those of a constant somewhere else. */
function spreadIn(
  /** @type {Node} */ argument,
  /** @type {Source} */ { program },
  /** @type {string} */ path,
) {
  if (argument.callee?.name === 'named') {
    const common = join(alliumFolder, 'src/kit/option-checks.ts');
    return interfaceOf(common, 'NamedOptions').members.map(({ name, text, default: standard }) => ({
      name,
      text,
      default: standard,
    }));
  }
  const from = program.body.find((/** @type {Node} */ statement) =>
    statement.specifiers?.some((/** @type {Node} */ { local }) => local?.name === argument.name),
  );
  if (!from) return fieldsOf(path, argument.name);
  return fieldsOf(join(dirname(path), from.source.value.replace(/\.js$/, '.ts')), argument.name);
}
