// Writes the table of options into the README of each middleware, from its `OPTIONS` and their JSDoc. A test keeps them
// equal.
//   npm run build && node scripts/option-tables.mjs

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { camelCase } from './layout.mjs';
import { middlewareNames, optionDocs } from './option-docs.mjs';
import { alliumFolder } from './repository.mjs';

/** @typedef {{ readonly expected: string, readonly default?: unknown, readonly required?: boolean }} Field */

const TABLE = /^\| option \|.*\n\|[-| ]+\|\n(?:\|.*\n)*/m;

export function readmeOf(/** @type {string} */ name) {
  return join(alliumFolder, 'src/middleware', name, 'README.md');
}

/** @returns {string} The README of a middleware with its table, as it has to be. */
export function withTable(/** @type {string} */ name, /** @type {Readonly<Record<string, Field>>} */ fields) {
  const text = readFileSync(readmeOf(name), 'utf8');
  if (!TABLE.test(text)) throw new Error(`The README of ${camelCase(name)}() has no table of options.`);
  const rows = optionDocs(name).map((option) => {
    const field = /** @type {Field} */ (fields[option.name]);
    // What it takes has a column of its own.
    const what = option.text
      .replace(/ ?Contract:.*$/, '')
      .replace(/: (?:an integer|a number) (?:≥ \d+|from \d+ to \d+)(?=\.)/, '');
    return `| \`${option.name}\` | ${takes(field, option.type)} | ${standard(field, option.default)} | ${escaped(what)} |`;
  });
  const head = ['| option | takes | default | what it is |', '|---|---|---|---|'];
  return text.replace(TABLE, () => `${[...head, ...rows].join('\n')}\n`);
}

/** In words, with the signature of a function. */
function takes(/** @type {Field} */ { expected }, /** @type {string | undefined} */ type) {
  const words = expected.replace(/'[^']+'/g, (text) => `\`${text}\``);
  return escaped(type === undefined ? words : words.replace('a function', `\`${type}\``));
}

function standard(/** @type {Field} */ { default: value, required }, /** @type {string} */ said) {
  if (required) return 'required';
  if (said === 'its kind') return `\`'${value}'\``;
  return /^(?:'[^']*'|[\d_]+|true|false|\{\}|\[\]|Infinity|[\w.]*[a-z][A-Z][\w.]*(?:\(\))?|Math\.random)$/.test(
    said,
  )
    ? `\`${said}\``
    : escaped(said);
}

function escaped(/** @type {string} */ text) {
  return text.replaceAll('|', '\\|');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const name of middlewareNames()) {
    const { OPTIONS } = await import(join(alliumFolder, 'dist/middleware', name, 'index.js'));
    writeFileSync(readmeOf(name), withTable(name, OPTIONS));
  }
}
