/** Finds the words of the lexicon in normalised text. */
import { CONCEPTS, type Concept, type Lexicon } from './lexicon.js';
import { ENGLISH } from './lexicon-english.js';
import { LANGUAGES } from './lexicon-languages.js';
import { normalise } from './normalise.js';
import { isArabic, isLetterCode } from './scripts.js';

/** The longest suffix that a stem takes. */
const SUFFIX = 14;

/** Columns of the table: a to z, the gap between words, the apostrophe. Other characters are in a map. */
const COLUMNS = 28;
const GAP = 26;
const COLUMN = new Int8Array(128).fill(-1);
for (let i = 0; i < 26; i++) COLUMN[97 + i] = i;
for (const gap of ' \n-_') COLUMN[gap.charCodeAt(0)] = GAP;
COLUMN[39] = 27;

/** A tree of entries in flat arrays: for each character of an entry, which may follow it. Place 0 is the beginning. */
export class Words {
  private next = new Int32Array(COLUMNS * 1024);
  /** What may follow, for characters without a column: by place and character. */
  private readonly others = new Map<number, number>();
  /** The concepts of words that end here, and of all that go on from here; -1 for none. */
  private readonly ends: number[] = [-1];
  private readonly stems: number[] = [-1];
  /** Concepts of words whose inner letters may change places, by a key that does not mind their order. */
  private readonly jumbled = new Map<number, number>();

  /** What `at` found last. */
  concept = -1;
  end = 0;

  constructor() {
    // English comes first: where two languages share a word, its reading wins.
    for (const lexicon of [ENGLISH, LANGUAGES])
      for (const [index, concept] of CONCEPTS.entries()) this.addAll(lexicon, concept, index);
  }

  private addAll(lexicon: Lexicon, concept: Concept, index: number): void {
    for (const entry of (lexicon[concept] ?? '').split(',')) {
      const word = normalise(entry.replace('*', '').replace(/\s+/g, ' ').trim()).text;
      if (word === '') continue;
      let place = 0;
      for (let i = 0; i < word.length; i++)
        place = this.follow(place, word.charCodeAt(i)) || this.grow(place, word.charCodeAt(i));
      // Arabic adds pronouns to nouns.
      if ((entry.endsWith('*') || isArabic(word.charCodeAt(0))) && this.stems[place] === -1)
        this.stems[place] = index;
      if (this.ends[place] === -1) this.ends[place] = index;
      if (lexicon !== ENGLISH || word.length < 6 || !/^[a-z]+$/.test(word)) continue;
      const key = jumbleKey(word, 0, word.length);
      if (!this.jumbled.has(key)) this.jumbled.set(key, index);
    }
  }

  private grow(place: number, code: number): number {
    const made = this.ends.push(-1) - 1;
    this.stems.push(-1);
    if (made * COLUMNS >= this.next.length) {
      const larger = new Int32Array(this.next.length * 2);
      larger.set(this.next);
      this.next = larger;
    }
    const column = code < 128 ? COLUMN[code]! : -1;
    if (column === -1) this.others.set(place * 65_536 + code, made);
    else this.next[place * COLUMNS + column] = made;
    return made;
  }

  /** The place behind a character; 0 if no entry goes on with it. */
  private follow(place: number, code: number): number {
    const column = code < 128 ? COLUMN[code]! : -1;
    return column === -1
      ? (this.others.get(place * 65_536 + code) ?? 0)
      : this.next[place * COLUMNS + column]!;
  }

  /**
   * The longest entry at a place where a word begins: its concept, and where it ends. `loose` lets words end anywhere, as
   * they do in scripts without spaces.
   */
  at(text: string, start: number, loose: boolean): boolean {
    if (this.from(text, start, loose)) return true;
    if (!isArabic(text.charCodeAt(start))) return false;
    // Conjunctions, prepositions and the article are written as parts of the word.
    for (let skipped = 1; skipped <= 3 && isArabic(text.charCodeAt(start + skipped)); skipped++)
      if (this.from(text, start + skipped, loose)) return true;
    return false;
  }

  private from(text: string, start: number, loose: boolean): boolean {
    this.concept = -1;
    let place = 0;
    for (let at = start; at < text.length; at++) {
      const code = text.charCodeAt(at);
      place = this.follow(place, code);
      if (place === 0) break;
      if (COLUMN[code] === GAP) while (at - start < 200 && COLUMN[text.charCodeAt(at + 1)] === GAP) at++;
      else if (this.ends[place] !== -1 || this.stems[place] !== -1) this.endAt(place, text, at + 1, loose);
    }
    return this.concept !== -1;
  }

  private endAt(place: number, text: string, at: number, loose: boolean): void {
    const inside = isLetterCode(text.charCodeAt(at)) && isLetterCode(text.charCodeAt(at - 1));
    if (this.ends[place] !== -1 && (loose || !inside)) {
      this.concept = this.ends[place]!;
      this.end = at;
    } else if (this.stems[place] !== -1) {
      let end = at;
      while (end - at <= SUFFIX && isLetterCode(text.charCodeAt(end))) end++;
      if (end - at > SUFFIX) return;
      this.concept = this.stems[place]!;
      this.end = end;
    }
  }

  /** The concept of a word whose inner letters stand in another order, such as `ignroe`; -1 for none. */
  jumble(text: string, start: number, end: number): number {
    const length = end - start;
    if (length < 6 || length > 14) return -1;
    return this.jumbled.get(jumbleKey(text, start, end)) ?? -1;
  }
}

/** The same for all orders of the inner letters, and hardly ever for other letters. */
function jumbleKey(text: string, start: number, end: number): number {
  let sum = 0;
  for (let i = start + 1; i < end - 1; i++) sum += LETTER_VALUES[text.charCodeAt(i) - 97] ?? 0;
  return (sum * 26 + text.charCodeAt(start) - 97) * 26 + text.charCodeAt(end - 1) - 97;
}

/** Numbers whose sums tell letters apart: far from one another, and no multiples of one step. */
const LETTER_VALUES = Array.from({ length: 26 }, (_, i) => {
  let value = Math.imul(i + 1, 0x9e3779b1);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return ((value ^ (value >>> 16)) >>> 0) % 8_388_593;
});
