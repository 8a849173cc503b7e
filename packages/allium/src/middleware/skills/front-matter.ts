/**
 * The front matter of a SKILL.md. Of YAML only this is read: `key: value` lines, plain or in quotes, and comments.
 * Whatever stands below other keys than `name` and `description` (lists, maps, several lines) is skipped.
 */
import { AlliumError } from '../../kernel/errors.js';

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
  const values = new Map<string, { readonly value: string; readonly line: number }>();
  let above = '';
  for (let i = 1; i < end; i++) {
    const line = lines[i]!.trimEnd();
    if (line === '' || line.startsWith('#')) continue;
    if (/^\s|^- /.test(line)) {
      checkBelow(above, file, i + 1);
      continue;
    }
    const [, key = '', value = ''] = /^([A-Za-z][\w-]*):(?:\s+(.*))?$/.exec(line) ?? [];
    if (key === '')
      throw invalidSkill(
        file,
        i + 1,
        `is not "key: value", with a space after the colon: ${JSON.stringify(line)}`,
      );
    if (values.has(key))
      throw invalidSkill(file, i + 1, `repeats the key "${key}". Remove one of the lines.`);
    values.set(key, { value, line: i + 1 });
    above = key;
  }
  const read = (key: keyof FrontMatter): string => {
    const found = values.get(key);
    if (!found)
      throw invalidSkill(
        file,
        end + 1,
        `has no "${key}" in its front matter. Add a line "${key}: …" above the ---`,
      );
    return scalar(key, found.value, file, found.line);
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

/** What comes after the front matter; everything when there is none. */
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

function checkBelow(above: string, file: string, line: number): void {
  if (above === '')
    throw invalidSkill(file, line, 'is indented below nothing. Begin the line at its left edge.');
  if (above === 'name' || above === 'description')
    throw invalidSkill(file, line, `goes on with "${above}", which has to be on one line. Join the lines.`);
}

function scalar(key: string, value: string, file: string, line: number): string {
  const quote = value[0];
  if (quote === '"' || quote === "'") return quoted(key, value, file, line);
  // A comment, as YAML has it.
  const plain = value.replace(/(^|\s)#.*$/, '').trim();
  if (plain === '') throw invalidSkill(file, line, `has no value for "${key}". Write it on the same line.`);
  if (/^[>|[{&*!%@`]/.test(plain))
    throw invalidSkill(
      file,
      line,
      `begins "${key}" with "${plain[0]}", which means something else in YAML. Write one line of text, in double quotes.`,
    );
  return plain;
}

function quoted(key: string, value: string, file: string, line: number): string {
  const text = unquoted(value.replace(/\s+#[^"']*$/, '').trimEnd());
  if (text === undefined)
    throw invalidSkill(
      file,
      line,
      `has a value of "${key}" with quotes that do not close, or an unknown escape: ${value}`,
    );
  const content = text.replace(/\s+/g, ' ').trim();
  if (content === '')
    throw invalidSkill(file, line, `has no value for "${key}". Write it between the quotes.`);
  return content;
}

function unquoted(text: string): string | undefined {
  if (text.startsWith("'"))
    return /^'(?:[^']|'')*'$/.test(text) ? text.slice(1, -1).replaceAll("''", "'") : undefined;
  try {
    // Double quotes and their escapes are, for what people write here, those of JSON.
    return JSON.parse(text) as string;
  } catch {
    return undefined;
  }
}
