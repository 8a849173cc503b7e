// Texts of other people that talk to nobody's model: paragraphs of the READMEs of the packages that are installed here. Half of
// the packages are for tuning, half for the report, by a hash of their names.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MODULES = fileURLToPath(new URL('../../../node_modules', import.meta.url));

/** @param {'tune' | 'report'} set @returns {string[]} */
export function proseCorpus(set) {
  const paragraphs = new Set();
  for (const name of packages()) {
    if ((hash(name) % 2 === 0) !== (set === 'tune')) continue;
    for (const paragraph of readme(name).split(/\n\s*\n/))
      if (paragraph.length >= 40 && paragraph.length < 4000) paragraphs.add(paragraph);
  }
  return [...paragraphs];
}

function packages() {
  const names = readdirSync(MODULES).filter((name) => !name.startsWith('.'));
  return names
    .flatMap((name) =>
      name.startsWith('@') ? readdirSync(join(MODULES, name)).map((one) => `${name}/${one}`) : [name],
    )
    .sort();
}

function readme(name) {
  try {
    const file = readdirSync(join(MODULES, name)).find((one) => /^readme(\.md)?$/i.test(one));
    return file ? readFileSync(join(MODULES, name, file), 'utf8') : '';
  } catch {
    return '';
  }
}

function hash(text) {
  let value = 7;
  for (const letter of text) value = (Math.imul(value, 31) + letter.charCodeAt(0)) >>> 0;
  return value >>> 3;
}
