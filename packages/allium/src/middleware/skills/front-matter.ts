/**
 * The front matter of a SKILL.md. Of YAML, only texts are read: plain, in quotes, or as a block (`|` and `>`), on one
 * line or several, and comments. Anything under other keys than `name` and `description` is skipped. Texts become one
 * line, as they are shown.
 */

import { AlliumError } from '../../index.js';

export interface FrontMatter {
  readonly name: string;
  readonly description: string;
}

/** Codes: `INVALID_SKILL`. `data` has the file and the line. */
export function invalidSkill(file: string, line: number, problem: string): AlliumError {
  return new AlliumError('INVALID_SKILL', `${file}:${line} ${problem}`, { data: { file, line } });
}

const EXAMPLE = 'Begin the file with these lines: ---, name: my-skill, description: When to use it., ---';

export function frontMatterOf(text: string, file: string): FrontMatter {
  const lines = linesOf(text);
  if (lines[0]?.trimEnd() !== '---') throw invalidSkill(file, 1, `has no front matter. ${EXAMPLE}`);
  const end = lines.findIndex((line, i) => i > 0 && line.trimEnd() === '---');
  if (end < 0)
    throw invalidSkill(file, lines.length, 'ends within its front matter. Close it with a line ---');
  const values = entriesOf(lines.slice(1, end), file);
  const read = (key: keyof FrontMatter): string => {
    const found = values.get(key);
    if (!found)
      throw invalidSkill(
        file,
        end + 1,
        `has no "${key}" in its front matter. Add a line "${key}: …" above the ---`,
      );
    return scalar(key, found, file);
  };
  const [name, description] = [read('name'), read('description')];
  if (!/^[\w.-]{1,64}$/.test(name))
    throw invalidSkill(
      file,
      values.get('name')!.line,
      `has the name ${JSON.stringify(name)}. Use 1 to 64 letters, digits, "_", "-" or ".".`,
    );
  if (description.length > 1024)
    throw invalidSkill(
      file,
      values.get('description')!.line,
      `has a description of ${description.length} characters. Use at most 1024: the model reads all of them in every request.`,
    );
  return { name, description };
}

/** What comes after the front matter; everything if there is none. */
export function bodyOf(text: string): string {
  const lines = linesOf(text);
  const end =
    lines[0]?.trimEnd() === '---' ? lines.findIndex((line, i) => i > 0 && line.trimEnd() === '---') : -1;
  return lines
    .slice(end + 1)
    .join('\n')
    .trim();
}

function linesOf(text: string): readonly string[] {
  return text.replace(/^\ufeff/, '').split(/\r?\n/);
}

interface Entry {
  /** What comes after the colon. */
  readonly value: string;
  /** The lines below that are indented, and list items, which need not be. */
  readonly below: string[];
  readonly line: number;
}

function entriesOf(lines: readonly string[], file: string): ReadonlyMap<string, Entry> {
  const entries = new Map<string, Entry>();
  let above: Entry | undefined;
  for (const [index, raw] of lines.entries()) {
    const line = raw.trimEnd();
    const number = index + 2;
    if (line === '' || line.startsWith('#')) continue;
    if (/^\s|^- /.test(line)) {
      if (!above)
        throw invalidSkill(
          file,
          number,
          'is indented, but nothing above it takes indented lines. Remove the indentation.',
        );
      above.below.push(line);
      continue;
    }
    const [, key = '', value = ''] = /^([A-Za-z][\w-]*):(?:\s+(.*))?$/.exec(line) ?? [];
    if (key === '')
      throw invalidSkill(
        file,
        number,
        `is not "key: value", with a space after the colon: ${JSON.stringify(line)}`,
      );
    if (entries.has(key))
      throw invalidSkill(file, number, `repeats the key "${key}". Remove one of the lines.`);
    above = { value, below: [], line: number };
    entries.set(key, above);
  }
  return entries;
}

/** `|` and `>`, with what may stand beside them: how to end the text, how far it is indented, a comment. */
const BLOCK = /^[|>](?:[+-]?[1-9]?|[1-9][+-])(?:\s+#.*)?$/;

function scalar(key: string, { value, below, line }: Entry, file: string): string {
  // In a block and in quotes, a `#` doesn't start a comment.
  if (BLOCK.test(value)) return filled(key, below.join('\n'), file, line);
  if (/^["']/.test(value))
    return filled(key, quoted(key, [value, ...below].join('\n'), file, line), file, line);
  if (withoutComment(value) === '' && below.length > 0) {
    const [first = '', ...rest] = below.map((part) => part.trim());
    if (/^(?:- |[\w-]+:(?: |$))/.test(first))
      throw invalidSkill(file, line, `has a list or a map as "${key}". Write text, in double quotes.`);
    return scalar(key, { value: first, below: rest, line }, file);
  }
  const first = withoutComment(value);
  if (/^[>|[{&*!%@`]/.test(first))
    throw invalidSkill(
      file,
      line,
      `begins "${key}" with "${first[0]}", which means something else in YAML. Write text, in double quotes.`,
    );
  return filled(key, [first, ...below.map(withoutComment)].join(' '), file, line);
}

function withoutComment(text: string): string {
  return text.replace(/(^|\s)#.*$/, '').trim();
}

function filled(key: string, text: string, file: string, line: number): string {
  const content = text.replace(/\s+/g, ' ').trim();
  if (content === '') throw invalidSkill(file, line, `has no value for "${key}". Write one.`);
  return content;
}

function quoted(key: string, value: string, file: string, line: number): string {
  // Line breaks in quotes are spaces.
  const text = unquoted(
    value
      .replace(/\s+#[^"']*$/, '')
      .trimEnd()
      .replace(/\s*\n\s*/g, ' '),
  );
  if (text === undefined)
    throw invalidSkill(
      file,
      line,
      `has a value of "${key}" with quotes that do not close, or an unknown escape: ${value}`,
    );
  return text;
}

function unquoted(text: string): string | undefined {
  if (text.startsWith("'"))
    return /^'(?:[^']|'')*'$/.test(text) ? text.slice(1, -1).replaceAll("''", "'") : undefined;
  try {
    // For what people write here, double quotes and their escapes are those of JSON.
    return JSON.parse(text) as string;
  } catch {
    return undefined;
  }
}
