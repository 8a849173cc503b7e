// Tables of what modules export: names, parameters, and what their JSDoc says. Those of `allium/kit` go by the files in
// packages/allium/src/kit.

import { basename, dirname, join } from 'node:path';
import { commentOf, sourceAt } from './interfaces.mjs';

/** @import { Node, Source } from './interfaces.mjs' */
/** @typedef {{ name: string, shown: string, text: string, example: string }} KitName */

/**
 * @param {boolean} withTypes Types too, or only what is there at run time?
 * @returns {KitName[]} What a file exports, functions first, each by its name.
 */
export function kitNames(/** @type {string} */ path, withTypes = true) {
  const source = sourceAt(path);
  /** @type {KitName[]} */
  const found = source.program.body
    .filter((/** @type {Node} */ { type }) => /^Export(?:Named|All)Declaration$/.test(type))
    .filter((/** @type {Node} */ { exportKind }) => withTypes || exportKind !== 'type')
    .flatMap((/** @type {Node} */ statement) => {
      if (statement.declaration) return nameOf(statement, declaredName(statement), source);
      const target = join(dirname(path), statement.source.value.replace(/\.js$/, '.ts'));
      if (statement.type === 'ExportAllDeclaration') return namespaceOf(target, statement.exported.name);
      return statement.specifiers
        .filter((/** @type {Node} */ { exportKind }) => withTypes || exportKind !== 'type')
        .map((/** @type {Node} */ { local, exported }) => foundIn(target, local.name, exported.name));
    });
  return found.sort((a, b) => Number(isType(a)) - Number(isType(b)) || (a.name < b.name ? -1 : 1));
}

function declaredName(/** @type {Node} */ { declaration }) {
  return (declaration.id ?? declaration.declarations[0].id).name;
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
      return nameOf(statement, `${name}.${declaredName(statement)}`, source);
    });
}

/** @returns {KitName} */
function foundIn(/** @type {string} */ path, /** @type {string} */ local, /** @type {string} */ name) {
  const source = sourceAt(path);
  const statement = source.program.body.findLast(
    (/** @type {Node} */ node) =>
      node.type === 'ExportNamedDeclaration' && node.declaration && declaredName(node) === local,
  );
  if (statement) return nameOf(statement, name, source);
  const door = source.program.body.find(
    (/** @type {Node} */ node) =>
      node.source && node.specifiers?.some((/** @type {Node} */ { exported }) => exported?.name === local),
  );
  if (!door) throw new Error(`${path} does not export ${local}.`);
  const further = join(dirname(path), door.source.value.replace(/\.js$/, '.ts'));
  const one = door.specifiers.find((/** @type {Node} */ { exported }) => exported?.name === local);
  return foundIn(further, one.local.name, name);
}

/** @returns {KitName} */
function nameOf(/** @type {Node} */ statement, /** @type {string} */ name, /** @type {Source} */ source) {
  const [text = '', example = ''] = commentOf(statement, source).split(/ ?@example /);
  if (text === '') throw new Error(`${name} has no JSDoc that says what it does.`);
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
  const type = typeAnnotation?.typeAnnotation;
  const name =
    type?.typeName?.name === 'Pick' ? type.typeArguments.params[0].typeName.name : type?.typeName?.name;
  if (/Context$/.test(name ?? '')) return 'ctx';
  if (name === 'ClientMessage') return 'message';
  return name === 'ModelResponse' ? 'response' : undefined;
}
