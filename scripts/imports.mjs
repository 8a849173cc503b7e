// Finds what a module imports, from its syntax tree: every way TypeScript has of naming another module.

import { parseSync, Visitor } from 'oxc-parser';

/**
 * @typedef {object} Import
 * @property {string | undefined} specifier Undefined when it is computed at run time.
 * @property {'static' | 'dynamic' | 'type'} kind `static`: loaded with the module, `import type` included, for it
 *   stays in the declaration files; `dynamic`: an `import()` or `require()` call; `type`: `import('x')` in a type.
 * @property {number} line
 */

/**
 * @param {string} path Its extension tells the syntax.
 * @param {string} code
 * @returns {Import[]} In source order.
 */
export function importsOf(path, code) {
  const { program, errors } = parseSync(path, code);
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`);
  /** @type {(Import & { start: number })[]} */
  const found = [];
  /** @param {Import['kind']} kind @param {{ start: number }} node @param {unknown} source */
  const add = (kind, node, source) => {
    found.push({ specifier: literal(source), kind, line: lineAt(code, node.start), start: node.start });
  };

  new Visitor({
    ImportDeclaration: (node) => add('static', node, node.source),
    ExportAllDeclaration: (node) => add('static', node, node.source),
    ExportNamedDeclaration: (node) => {
      if (node.source) add('static', node, node.source);
    },
    TSImportEqualsDeclaration: (node) => {
      if (node.moduleReference.type === 'TSExternalModuleReference')
        add('static', node, node.moduleReference.expression);
    },
    ImportExpression: (node) => add('dynamic', node, node.source),
    CallExpression: (node) => {
      if (node.callee.type === 'Identifier' && node.callee.name === 'require')
        add('dynamic', node, node.arguments[0]);
    },
    TSImportType: (node) => add('type', node, node.source),
  }).visit(program);

  return found.sort((a, b) => a.start - b.start).map(({ start: _, ...rest }) => rest);
}

/** The package a bare specifier belongs to: `zod/v4` → `zod`, `@scope/name/sub` → `@scope/name`. */
export function packageOf(/** @type {string} */ specifier) {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}

/** @returns {string | undefined} */
function literal(/** @type {any} */ node) {
  if (node?.type === 'Literal' && typeof node.value === 'string') return node.value;
  if (node?.type === 'TSLiteralType') return literal(node.literal);
  if (node?.type === 'TemplateLiteral' && node.expressions.length === 0) return node.quasis[0]?.value.cooked;
  return undefined;
}

function lineAt(/** @type {string} */ code, /** @type {number} */ offset) {
  let line = 1;
  for (let at = code.indexOf('\n'); at !== -1 && at < offset; at = code.indexOf('\n', at + 1)) line++;
  return line;
}
