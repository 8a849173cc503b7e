/** Words of a text, compared without their endings. */

export interface Word {
  readonly stem: string;
  /** Where it is in the text. */
  readonly at: number;
}

/** Words that say nothing about what is meant. */
const COMMON = new Set(
  (
    'a an and are as at be by can do does for from get give has have how i in into is it its me my now of on one or our ' +
    'please right run set show some someone something tell that the their them then there this to up use us what when ' +
    'where which who whom will with you your find list look make fetch'
  ).split(' '),
);

/** Most texts have only English letters. To look for those of all languages takes two milliseconds the first time. */
const ENGLISH = { word: /[a-z][a-z\d]*/gi, hump: /([a-z])([A-Z])/g };
const ANY = { word: /\p{L}[\p{L}\p{N}]*/gu, hump: /(\p{Ll})(\p{Lu})/gu };

function lettersOf(text: string): typeof ANY {
  return /^[ -~\s]*$/.test(text) ? ENGLISH : ANY;
}

export function wordsOf(text: string): readonly Word[] {
  return [...text.matchAll(lettersOf(text).word)].map(({ 0: word, index }) => ({
    stem: stemOf(word),
    at: index,
  }));
}

/** The words that count; all of them if all are common. */
export function significant(text: string): readonly string[] {
  const { word, hump } = lettersOf(text);
  const words = text.replace(hump, '$1 $2').match(word) ?? [];
  const telling = words.filter((word) => !COMMON.has(word.toLowerCase()));
  return [...new Set((telling.length > 0 ? telling : words).map(stemOf))];
}

/** `cities` and `city`, `sending` and `sends`: what is left without the ending, if that is three letters or more. */
function stemOf(word: string): string {
  const lower = word.toLowerCase().replace(/ies$/, 'y');
  const stem = lower.replace(/(ing|ed|es|s|e)$/, '');
  return stem.length >= 3 ? stem : lower;
}
