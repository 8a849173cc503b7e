// Writes docs/reference/options.md, messages.md, test-kit.md, kit.md and names.md: tables of what the sources say of their
// interfaces and exports, between texts that are kept here. A test keeps the pages equal to what this makes.
//   node scripts/options-pages.mjs

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { interfaceOf } from './interfaces.mjs';
import { kitNames, kitTitle } from './kit-page.mjs';
import { KIT_TEXT, MESSAGES_TEXT, NAMES_TEXT, OPTIONS_TEXT, TEST_KIT_TEXT } from './options-texts.mjs';
import { alliumFolder, root } from './repository.mjs';

const folder = join(root, 'docs/reference');

/** @returns {readonly { path: string, text: string }[]} The pages, as Markdown. */
export function optionsPages() {
  return [
    ['options.md', OPTIONS_TEXT],
    ['messages.md', MESSAGES_TEXT],
    ['test-kit.md', TEST_KIT_TEXT],
    ['kit.md', KIT_TEXT],
    ['names.md', NAMES_TEXT],
  ].map(([name, text]) => ({
    path: join(folder, /** @type {string} */ (name)),
    text: filled(/** @type {string} */ (text)),
  }));
}

const notice =
  '<!-- Written by scripts/options-pages.mjs from the interfaces in packages/allium/src. Do not edit. -->';

/**
 * A text with its tables. A line `@options kernel/agent.ts AgentOptions` is the place of one, with the names of the
 * members after it where not all are wanted (`name=value` also says its default); `@fields` is the same for what people
 * are given rather than write; `@shapes kernel/messages.ts A B` is that of one with a row per interface,
 * `@laws testing/middleware-laws` of one with a row per law and its statement, and
 * `@kit kit/options.ts` of a chapter with a row per export, and `@names index.ts` of a table with a row per export that is
 * no type.
 */
function filled(/** @type {string} */ text) {
  const lines = text.trim().split('\n');
  return `${notice}\n\n${lines.map((line) => tableFor(line) ?? line).join('\n')}\n`;
}

function tableFor(/** @type {string} */ line) {
  const [kind, path = '', ...names] = line.split(' ');
  const file = join(alliumFolder, 'src', path);
  if (kind === '@options') return optionsTable(file, /** @type {string} */ (names[0]), names.slice(1));
  if (kind === '@fields') return fieldsTable(file, /** @type {string} */ (names[0]));
  if (kind === '@shapes') return shapesTable(file, names);
  if (kind === '@laws') return lawsTable(file);
  if (kind === '@kit') return kitChapter(file);
  if (kind === '@names') return namesTable(kitNames(file, false));
  return undefined;
}

function optionsTable(
  /** @type {string} */ file,
  /** @type {string} */ name,
  /** @type {readonly string[]} */ wanted,
) {
  const { members } = interfaceOf(file, name);
  /** @type {Map<string, string | undefined>} */
  const defaults = new Map();
  for (const one of wanted) {
    const [member = '', said] = one.split('=');
    defaults.set(member, said);
  }
  for (const one of defaults.keys())
    if (!members.some((member) => member.name === one)) throw new Error(`${name} has no member ${one}.`);
  const rows = members
    .filter((member) => wanted.length === 0 || defaults.has(member.name))
    .map((member) => {
      checkDescribed(name, member);
      const said = defaults.get(member.name) ?? (member.optional ? member.default : undefined);
      const standard = said === undefined ? 'required' : defaultOf(said);
      return `| \`${member.name}\` | ${code(member.type)} | ${standard} | ${escaped(member.text)} |`;
    });
  return ['| option | type | default | what it is |', '|---|---|---|---|', ...rows].join('\n');
}

function fieldsTable(/** @type {string} */ file, /** @type {string} */ name) {
  const rows = interfaceOf(file, name).members.map((member) => {
    checkDescribed(name, member);
    const shown = `\`${member.name}${member.optional ? '?' : ''}\``;
    return `| ${shown} | ${code(member.type)} | ${escaped(member.text)} |`;
  });
  return ['| field | type | what it is |', '|---|---|---|', ...rows].join('\n');
}

function checkDescribed(
  /** @type {string} */ name,
  /** @type {{ readonly name: string, readonly text: string }} */ member,
) {
  if (member.text === '') throw new Error(`${name}.${member.name} has no JSDoc that says what it is.`);
}

function shapesTable(/** @type {string} */ file, /** @type {readonly string[]} */ names) {
  const rows = names.map((name) => {
    const { text, members } = interfaceOf(file, name);
    if (text === '') throw new Error(`${name} has no JSDoc that says what it is.`);
    const fields = members
      .filter((member) => member.name !== 'metadata')
      .map((member) => `${member.name}${member.optional ? '?' : ''}: ${member.type}`);
    return `| \`${name}\` | ${code(`{ ${fields.join('; ')} }`)} | ${escaped(text)} |`;
  });
  return ['| type | fields | what it is |', '|---|---|---|', ...rows].join('\n');
}

function kitChapter(/** @type {string} */ file) {
  const { title, text } = kitTitle(file);
  const names = kitNames(file).map((one) =>
    one.example === '' ? one : { ...one, text: `${one.text} For example: \`${one.example}\`` },
  );
  return [`## ${title}`, '', text, '', namesTable(names)].join('\n');
}

function namesTable(/** @type {readonly { shown: string, text: string }[]} */ names) {
  const rows = names.map(({ shown, text }) => `| ${code(shown)} | ${escaped(text)} |`);
  return ['| name | what it is |', '|---|---|', ...rows].join('\n');
}

/** The laws in the order of the list in `index.ts`, which names what the other files of the folder export. */
function lawsTable(/** @type {string} */ folderOfLaws) {
  const text = (/** @type {string} */ file) => readFileSync(join(folderOfLaws, file), 'utf8');
  const [, list = ''] = /const LAWS = \[([^\]]*)\]/.exec(text('index.ts')) ?? [];
  const exported = readdirSync(folderOfLaws).flatMap((file) => text(file).split(/^export const /m));
  const rows = [...list.matchAll(/\w+/g)].flatMap(([name]) => {
    const source = exported.find((one) => one.startsWith(`${name}:`) || one.startsWith(`${name} `)) ?? '';
    const laws = [...source.matchAll(/law: '([a-z-]+)',\s+statement:\s+(['"])(.*)\2,/g)];
    if (laws.length === 0) throw new Error(`No law with a statement is found in ${name}.`);
    return laws.map(([, law, , statement = '']) => `| \`${law}\` | ${escaped(statement)} |`);
  });
  return ['| law | what holds |', '|---|---|', ...rows].join('\n');
}

/** Defaults that are code are shown as such; others are words. */
function defaultOf(/** @type {string} */ text) {
  if (text === '') return '';
  return /^(?:'[^']*'|[\d.]+|true|false|\{\}|\[\])$/.test(text) ? code(text) : escaped(text);
}

function code(/** @type {string} */ text) {
  return `\`${escaped(text)}\``;
}

/** A bar would end the cell. */
function escaped(/** @type {string} */ text) {
  return text.replaceAll('|', '\\|');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const { path, text } of optionsPages()) writeFileSync(path, text);
}
