// What the interfaces of the sources say about their members, read off the syntax tree.

import { readFileSync } from 'node:fs';
import { parseSync } from 'oxc-parser';

/** @typedef {Record<string, any>} Node A node of the syntax tree. */
/** @typedef {{ program: Node, comments: readonly Node[], code: string }} Source */
/** @typedef {{ name: string, type: string, optional: boolean, text: string, default: string }} Member */

/** @returns {Source} */
export function sourceAt(/** @type {string} */ path) {
  const code = readFileSync(path, 'utf8');
  const { program, comments } = parseSync(path, code);
  return { program, comments, code };
}

/** @returns {Node[]} What a module declares, exported or not. */
export function declarations(/** @type {Node} */ program) {
  return program.body.map(declared);
}

function declared(/** @type {Node} */ statement) {
  return statement.declaration ?? statement;
}

/** The JSDoc before a node, on one line. Only comments for tools may stand in between. */
export function commentOf(/** @type {Node} */ node, /** @type {Source} */ { comments, code }) {
  let { start } = node;
  const before = () => comments.find(({ end }) => end <= start && code.slice(end, start).trim() === '');
  let comment = before();
  while (comment?.type === 'Line') {
    start = comment.start;
    comment = before();
  }
  if (!comment?.value.startsWith('*')) return '';
  return comment.value
    .replace(/^\s*\*+ ?/gm, '')
    .replace(/\s+/g, ' ')
    .trim();
}

/**
 * An interface: its JSDoc, and its members in the order they are written, without those it inherits.
 * @returns {{ text: string, members: Member[] }}
 */
export function interfaceOf(/** @type {string} */ path, /** @type {string} */ name) {
  const source = sourceAt(path);
  const statement = source.program.body.find(
    (/** @type {Node} */ node) =>
      declared(node).type === 'TSInterfaceDeclaration' && declared(node).id.name === name,
  );
  if (!statement) throw new Error(`${path} has no interface ${name}.`);
  const members = declared(statement).body.body.map((/** @type {Node} */ member) => {
    const [text = '', standard = ''] = commentOf(member, source).split(/ ?@default /);
    return {
      name: member.key.name ?? member.key.value,
      type: typeOf(member, source),
      optional: member.optional === true,
      text,
      default: standard,
    };
  });
  return { text: commentOf(statement, source), members };
}

/** The type as it is written, on one line; of a method, its signature. */
function typeOf(/** @type {Node} */ member, /** @type {Source} */ { code }) {
  const written =
    member.type === 'TSMethodSignature'
      ? code.slice(member.key.end, member.end).replace(/^\?/, '')
      : code.slice(member.typeAnnotation.typeAnnotation.start, member.typeAnnotation.typeAnnotation.end);
  return written
    .replace(/\s+/g, ' ')
    .replace(/readonly /g, '')
    .replace(/;$/, '')
    .replace(/^\| /, '')
    .trim();
}
