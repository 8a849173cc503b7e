// Checks what a page points at: links, anchors, paths of this repository, and npm scripts.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { anchorsOf, codeSpansOf, fencesOf, linksOf } from './markdown.mjs';

/**
 * @param {string} root The repository.
 * @param {string} page Path of the page below `root`.
 * @returns {string[]} One message per reference that leads nowhere.
 */
export function brokenReferences(root, page) {
  const markdown = readFileSync(join(root, page), 'utf8');
  /** @type {string[]} */
  const broken = [];
  const bases = [...new Set(['.', dirname(page), ownPackage(page), 'packages/allium'])].map((base) =>
    join(root, base),
  );

  for (const { text, line } of linksOf(markdown)) {
    const problem = brokenLink(root, page, text);
    if (problem) broken.push(`${page}:${line} links to ${text}: ${problem}.`);
  }
  for (const { text, line } of codeIn(markdown)) {
    for (const script of scriptsIn(text)) {
      if (!scriptsOf(root).has(script))
        broken.push(`${page}:${line} names the npm script \`${script}\`, which package.json does not have.`);
    }
    for (const path of pathsIn(text, topFolders(root))) {
      if (!bases.some((base) => existsSync(join(base, path))))
        broken.push(`${page}:${line} names ${path}, which does not exist.`);
    }
  }
  return broken;
}

/** @returns {string | undefined} */
function brokenLink(/** @type {string} */ root, /** @type {string} */ page, /** @type {string} */ target) {
  if (/^[a-z][a-z+.-]*:|^\/\//i.test(target)) return undefined;
  const [path = '', anchor] = target.split('#');
  const file =
    path === ''
      ? page
      : path.startsWith('/')
        ? path.slice(1)
        : normalize(join(dirname(page), decodeURI(path)));
  if (!existsSync(join(root, file))) return 'no such file';
  if (!anchor || !file.endsWith('.md')) return undefined;
  return anchorsOf(readFileSync(join(root, file), 'utf8')).has(anchor)
    ? undefined
    : `no such heading in ${file}`;
}

/** Inline code and the lines of shell fences: the places where a page names commands and paths. */
function codeIn(/** @type {string} */ markdown) {
  const shell = fencesOf(markdown).filter(({ language }) => /^(sh|bash|shell|console)$/.test(language));
  return [
    ...codeSpansOf(markdown),
    ...shell.flatMap(({ code, line }) =>
      code.split('\n').map((text, index) => ({ text, line: line + index })),
    ),
  ];
}

/** The root's scripts a command runs; one run in another folder (`--prefix`, `-w`) is not ours to judge. */
function scriptsIn(/** @type {string} */ text) {
  if (/\s(--prefix|-w|--workspaces?)\b/.test(text)) return [];
  return [...text.matchAll(/\bnpm (?:run(?:-script)? ([\w:.-]+)|(start|test)\b)/g)].map(
    (match) => match[1] ?? match[2] ?? '',
  );
}

/**
 * Words that are paths of this repository: they begin with one of its folders (or `src/`), or they name a file in
 * a folder. Placeholders (`<name>`, `…`) are not paths, of a glob only the part before the star is looked at, and
 * a word that begins with `./` speaks of the reader's own project.
 */
function pathsIn(/** @type {string} */ text, /** @type {ReadonlySet<string>} */ folders) {
  return text
    .split(/[\s'"()=,;|]+/)
    .map((word) => word.replace(/(:\d+)*[.:]*$/, ''))
    .filter((word) => /^[\w.-]+\/[\w./*-]*$/.test(word) && !/^(\.\.?|node_modules|dist)\//.test(word))
    .filter((word) => folders.has(word.slice(0, word.indexOf('/'))) || /\.(ts|mjs|md|sh)$/.test(word))
    .map((word) => (word.includes('*') ? word.slice(0, word.lastIndexOf('/', word.indexOf('*')) + 1) : word));
}

function topFolders(/** @type {string} */ root) {
  const entries = readdirSync(root, { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  return new Set(['src', ...folders.filter((name) => !['.git', 'node_modules', 'dist'].includes(name))]);
}

function scriptsOf(/** @type {string} */ root) {
  return new Set(Object.keys(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts ?? {}));
}

function ownPackage(/** @type {string} */ page) {
  return /^packages\/[^/]+/.exec(page)?.[0] ?? '.';
}
