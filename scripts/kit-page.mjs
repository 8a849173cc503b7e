// Tables of what `allium/kit` exports, by the files in packages/allium/src/kit: names, parameters, and what their JSDoc says.

import { basename, dirname, join } from 'node:path';
import { commentOf, sourceAt } from './interfaces.mjs';

/** @import { Node, Source } from './interfaces.mjs' */
/** @typedef {{ name: string, shown: string, text: string, example: string }} KitName */

/** @returns {KitName[]} What a file of the kit exports, functions first, each by its name. */
export function kitNames(/** @type {string} */ path) {
  const source = sourceAt(path);
  /** @type {KitName[]} */
  const found = source.program.body
    .filter((/** @type {Node} */ { type }) => /^Export(?:Named|All)Declaration$/.test(type))
    .flatMap((/** @type {Node} */ statement) => {
      if (statement.declaration) return nameOf(statement, statement.declaration.id.name, source);
      const target = join(dirname(path), statement.source.value.replace(/\.js$/, '.ts'));
      if (statement.type === 'ExportAllDeclaration') return namespaceOf(target, statement.exported.name);
      return statement.specifiers.map((/** @type {Node} */ { local, exported }) =>
        foundIn(target, local.name, exported.name),
      );
    });
  return found.sort((a, b) => Number(isType(a)) - Number(isType(b)) || (a.name < b.name ? -1 : 1));
}

/** The first sentence of the comment that a file of the kit begins with: `Options: checks for factories.` → both halves. */
export function kitTitle(/** @type {string} */ path) {
  const { comments } = sourceAt(path);
  const text = String(comments[0]?.value ?? '')
    .replace(/^\s*\*+ ?/gm, '')
    .replace(/\s+/g, ' ')
    .trim();
  const [, title, rest] = /^([\w-]+): (.*)$/.exec(text) ?? [];
  if (!title || !rest)
    throw new Error(`${basename(path)} has to begin with a comment like "Options: what is in it."`);
  return { title, text: rest.charAt(0).toUpperCase() + rest.slice(1) };
}

function isType(/** @type {KitName} */ { shown }) {
  return shown.startsWith('type ');
}

/** @returns {KitName[]} What a file exports, as members of `export * as name`. */
function namespaceOf(/** @type {string} */ path, /** @type {string} */ name) {
  const source = sourceAt(path);
  return source.program.body
    .filter((/** @type {Node} */ { type }) => /^Export(?:Named|All)Declaration$/.test(type))
    .flatMap((/** @type {Node} */ statement) => {
      if (statement.type === 'ExportAllDeclaration')
        return namespaceOf(join(dirname(path), statement.source.value.replace(/\.js$/, '.ts')), name);
      const own = statement.declaration.id?.name ?? statement.declaration.declarations[0].id.name;
      return nameOf(statement, `${name}.${own}`, source);
    });
}

function foundIn(/** @type {string} */ path, /** @type {string} */ local, /** @type {string} */ name) {
  const source = sourceAt(path);
  const statement = source.program.body.find(
    (/** @type {Node} */ node) =>
      node.type === 'ExportNamedDeclaration' && node.declaration?.id?.name === local,
  );
  if (!statement) throw new Error(`${path} does not declare ${local}.`);
  return nameOf(statement, name, source);
}

/** @returns {KitName} */
function nameOf(/** @type {Node} */ statement, /** @type {string} */ name, /** @type {Source} */ source) {
  const [text = '', example = ''] = commentOf(statement, source).split(/ ?@example /);
  if (text === '') throw new Error(`${name} of the kit has no JSDoc that says what it does.`);
  const { declaration } = statement;
  const shown =
    declaration.type === 'FunctionDeclaration'
      ? `${name}(${parameters(declaration.params)})`
      : declaration.type === 'ClassDeclaration'
        ? `new ${name}(${parameters(constructorOf(declaration))})`
        : declaration.type === 'VariableDeclaration'
          ? name
          : `type ${name}`;
  return { name, shown, text, example };
}

function constructorOf(/** @type {Node} */ { body }) {
  return body.body.find((/** @type {Node} */ { kind }) => kind === 'constructor')?.value.params ?? [];
}

/** Names only; one that may be left out has a question mark, one that is taken apart is called by its type. */
function parameters(/** @type {readonly Node[]} */ params) {
  return params.map(parameter).join(', ');
}

/** @returns {string} */
function parameter(/** @type {Node} */ node) {
  switch (node.type) {
    case 'TSParameterProperty':
      return parameter(node.parameter);
    case 'AssignmentPattern':
      return `${parameter(node.left)}?`;
    case 'RestElement':
      return `...${parameter(node.argument)}`;
    case 'ObjectPattern':
      return contextName(node) ?? 'options';
    default:
      return `${node.name}${node.optional ? '?' : ''}`;
  }
}

function contextName(/** @type {Node} */ { typeAnnotation }) {
  const name = typeAnnotation?.typeAnnotation?.typeName?.name;
  if (/Context$/.test(name ?? '')) return 'ctx';
  return name === 'ModelResponse' ? 'response' : undefined;
}
