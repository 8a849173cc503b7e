/** The values in a message: numbers, quotations, addresses, dates and names, in the order in which they are taken. */

export interface Value<T> {
  readonly value: T;
  /** It is in the part of the message that belongs to the tool. */
  readonly own: boolean;
}

export interface Values {
  readonly text: string;
  /** The tool's own part of the message. */
  readonly clause: string;
  readonly numbers: readonly Value<number>[];
  readonly quoted: readonly Value<string>[];
  readonly emails: readonly Value<string>[];
  readonly urls: readonly Value<string>[];
  readonly dates: readonly Value<string>[];
  readonly names: readonly Value<string>[];
  /** Whatever is between spaces, without punctuation: for texts of a certain form. May be part of the others. */
  readonly words: readonly Value<string>[];
}

// Messages may be long and made of anything: a pattern begins where a run of its characters begins, and looks at each
// run once. If it could begin anywhere in it, it would look at the rest from every letter on.
export const EMAIL = /(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g;
export const URL_TEXT = /https?:\/\/[^\s"'<>)]+[^\s"'<>).,;:!?]/g;
const DATE = /\b\d{4}-\d{2}-\d{2}\b/g;
const QUOTED = /"([^"]+)"|“([^“”]+)”|(?<![\p{L}\p{N}])'([^']+)'(?![\p{L}\p{N}])/gu;
const NUMBER = /(?<![\w.@-])-?\d+(?:\.\d+)?(?![\w@]|\.\d|-\d)/g;
/** Where a sentence begins. Looks back from a place, no further than it must. */
const BEGINNING = /(?<=(?:^|[.!?:]\s*)["“(]*)/y;
/** Capitalised words in a row. */
const NAME = /\p{Lu}[\p{L}\p{N}'’-]*(?: \p{Lu}[\p{L}\p{N}'’-]*)*/gu;
const WORD = /(?<![^\s"“”'(),;!?])[^\s"“”'(),;!?]*[^\s"“”'(),;!?.:]/g;
const SPELLED = 'zero one two three four five six seven eight nine ten eleven twelve'.split(' ');

export function findValues(text: string, clause: { readonly from: number; readonly to: number }): Values {
  /** Marks each character that is part of a value. */
  const taken = new Uint8Array(text.length);
  const find = <T>(pattern: RegExp, read: (match: RegExpExecArray) => T | undefined): Value<T>[] => {
    const found = [...text.matchAll(pattern)].flatMap((match) => {
      const [start, end] = [match.index, match.index + match[0].length];
      if (taken.subarray(start, end).includes(1)) return [];
      const value = read(match as RegExpExecArray);
      if (value === undefined) return [];
      return [{ value, start, end, own: start >= clause.from && start < clause.to }];
    });
    for (const { start, end } of found) taken.fill(1, start, end);
    // Those of the tool's own part come first.
    return [...found.filter(({ own }) => own), ...found.filter(({ own }) => !own)].map(({ value, own }) => ({
      value,
      own,
    }));
  };
  // What was found is not looked at again: no number in a date, no name in a quotation.
  const emails = find(EMAIL, ([match]) => match);
  const urls = find(URL_TEXT, ([match]) => match);
  const quoted = find(QUOTED, ([, a, b, c]) => a ?? b ?? c);
  const dates = find(DATE, ([match]) => match);
  const numbers = find(new RegExp(`${NUMBER.source}|\\b(?:${SPELLED.join('|')})\\b`, 'gi'), ([match]) => {
    const spelled = SPELLED.indexOf(match.toLowerCase());
    return spelled === -1 ? Number(match) : spelled;
  });
  const names = find(NAME, (match) =>
    beginsSentence(text, match.index) ? withoutFirst(match[0]) : match[0],
  );
  taken.fill(0);
  const words = find(WORD, ([match]) => match);
  const own = text.slice(clause.from, clause.to);
  return {
    text,
    clause: own,
    numbers,
    quoted,
    emails,
    urls,
    dates,
    names: names.filter(({ value }) => value !== 'I'),
    words,
  };
}

function beginsSentence(text: string, at: number): boolean {
  BEGINNING.lastIndex = at;
  return BEGINNING.test(text);
}

/** The first word of a sentence is capitalised for another reason. */
function withoutFirst(name: string): string | undefined {
  const rest = name.split(' ').slice(1).join(' ');
  return rest === '' ? undefined : rest;
}
