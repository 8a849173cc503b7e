/** Reads normalised text as sentences of concepts. */
import { BORDER_SIGNS, CHAINERS, CLAUSE, conceptIndex, OPENERS, VERBS } from './clauses.js';
import { isLetterCode, isSpaceless } from './scripts.js';
import { ATTRIBUTE, BORDER, MARKUP, MEMBER, ROLE_LINE, TAG, TOLD, UNSEEN } from './signs.js';
import { Words } from './words.js';

/** One concept in a sentence. */
export interface Token {
  readonly concept: number;
  /** Which word of the sentence it is. */
  readonly word: number;
  /** It opens a clause, as orders do. */
  readonly opens: boolean;
  readonly quoted: boolean;
  /** An English verb that tells rather than orders: `ignores`, `ignored`, `ignoring`. */
  readonly told: boolean;
}

export interface Sentence {
  /** The whole text that it stands in, from `start` to `end`. */
  readonly text: string;
  readonly start: number;
  readonly end: number;
  readonly tokens: readonly Token[];
  readonly asks: boolean;
  /** How many words it has that mean nothing here, and where the last of them before each token is counted. */
  readonly others: readonly number[];
}

const { tag, role, border, unseen, url, called, ai, agent, said } = conceptIndex;

/** Longer sentences are cut: what belongs together stands closer. */
const LONGEST = 60;
/** A quotation mark without a closing one within this many characters doesn't begin a quotation. */
const QUOTATION = 600;

/** A field begins at most this far into its line. */
const INDENT = 40;

export class Reader {
  private readonly words = new Words();

  read(text: string, runTogether: boolean): Sentence[] {
    return new Reading(this.words, text, runTogether).sentences();
  }
}

class Reading {
  private readonly found: Sentence[] = [];
  private tokens: Token[] = [];
  private start = 0;
  private word = 0;
  private opens = true;
  private quote = 0;
  private quoteStart = 0;
  private lineStart = 0;
  private others: number[] = [];

  constructor(
    private readonly words: Words,
    private readonly text: string,
    private readonly runTogether: boolean,
  ) {}

  sentences(): Sentence[] {
    const { text } = this;
    let place = this.role(0);
    while (place < text.length) {
      const code = text.charCodeAt(place);
      if (code === 32) place++;
      else if (isSpaceless(code) || code === 0xff01 || code === 0xff1f) place = this.spaceless(place, code);
      else if (isLetterCode(code)) place = this.wordAt(place, code);
      else place = this.sign(place, code);
    }
    this.close(text.length, false);
    return this.found;
  }

  private push(concept: number, opens = this.opens, told = false): void {
    this.tokens.push({ concept, word: this.word, opens, quoted: this.quote !== 0, told });
  }

  private close(end: number, asks: boolean): void {
    const { text, start, tokens, others } = this;
    if (tokens.length > 0) this.found.push({ text, start, end, tokens, asks, others });
    if (tokens.length > 0) this.tokens = [];
    if (others.length > 0) this.others = [];
    this.start = end;
    this.word = 0;
    this.opens = true;
  }

  /** A word in a script with spaces; returns where it ends. */
  private wordAt(start: number, code: number): number {
    const { text, words } = this;
    if (code === 104 && (text.startsWith('http://', start) || text.startsWith('https://', start)))
      return this.url(start);
    let end = start + 1;
    if (words.at(text, start, false)) {
      // `said: …` on a line of its own is a field. Its name says nothing about its value, as in JSON.
      if (words.concept === said && this.beginsLine(start) && text.charCodeAt(words.end) === 58) {
        this.close(words.end + 1, false);
        return words.end + 1;
      }
      this.push(
        words.concept,
        this.opens,
        VERBS[words.concept] === true && TOLD.test(text.slice(start, words.end)),
      );
      this.opens = OPENERS[words.concept] === true && (this.opens || CHAINERS[words.concept] === true);
      end = words.end;
      this.addressed(end);
    } else {
      while (
        isLetterCode(text.charCodeAt(end)) ||
        (text.charCodeAt(end) === 39 && isLetterCode(text.charCodeAt(end + 1)))
      )
        end++;
      const jumbled = words.jumble(text, start, end);
      if (jumbled !== -1) this.push(jumbled);
      else if (this.runTogether && end - start > 12) this.inside(start, end);
      // Short words are mostly articles and the like.
      else if (end - start > 3) this.others.push(this.word);
      this.opens = false;
    }
    if (++this.word >= LONGEST) this.close(end, false);
    return end;
  }

  /** Nothing but spaces and the signs of lists and quotations stands before it. */
  private beginsLine(place: number): boolean {
    return place - this.lineStart <= INDENT && !/[^\s>*-]/.test(this.text.slice(this.lineStart, place));
  }

  /** `Assistant, …` and `Note to AI agents: …` speak to those they name. */
  private addressed(end: number): void {
    const last = this.tokens.at(-1)!;
    if (last.concept !== ai && last.concept !== agent) return;
    const next = this.text.charCodeAt(end);
    const before = this.tokens.at(-2)?.concept;
    if (
      (next === 44 || next === 58 || next === 33 || next === 0xff1a || next === 0xff0c) &&
      (last.opens || before === conceptIndex.note)
    )
      this.push(called, true);
  }

  /** Words that nothing separates. */
  private inside(start: number, end: number): void {
    for (let at = start; at < end; ) {
      const isWord = this.words.at(this.text, at, true) && this.words.end - at >= 3 && this.words.end <= end;
      if (isWord) {
        this.push(this.words.concept);
        this.word++;
        at = this.words.end;
      } else at++;
    }
  }

  private url(start: number): number {
    this.push(url, false);
    this.word++;
    let end = start + 8;
    const { text } = this;
    for (
      let code = text.charCodeAt(end);
      code > 32 && code !== 34 && code !== 39 && code !== 60 && code !== 62 && code !== 41;
      code = text.charCodeAt(++end)
    );
    // A full stop behind it ends the sentence.
    while (end > start && (text.charCodeAt(end - 1) === 46 || text.charCodeAt(end - 1) === 44)) end--;
    this.opens = false;
    return end;
  }

  /** Chinese and Japanese: a word may begin at every character. Two of them count as one word. */
  private spaceless(place: number, code: number): number {
    if (code === 0x3002 || code === 0xff01 || code === 0xff1f || code === 0xff1b) {
      this.close(place + 1, code === 0xff1f);
      return place + 1;
    }
    if (this.words.at(this.text, place, true)) {
      this.push(this.words.concept);
      this.opens = false;
      this.word += (this.words.end - place) / 2;
      return this.words.end;
    }
    if (code === 0x3001) this.opens = true;
    this.word += 0.5;
    return place + 1;
  }

  private sign(place: number, code: number): number {
    const { text } = this;
    if (code === 10) return this.newLine(place);
    if (
      code === 46 ||
      code === 33 ||
      code === 63 ||
      code === 59 ||
      code === 0x2026 ||
      code === 0x61f ||
      code === 0x964
    )
      return this.stop(place, code);
    if (code === 60 || code === 91 || code === 123) return this.bracket(place, code);
    if (code === 34 || code === 39 || code === 96) return this.quotation(place, code);
    if (code === 64 && isLetterCode(text.charCodeAt(place + 1)) && isLetterCode(text.charCodeAt(place - 1))) {
      this.push(url, false);
      let end = place + 1;
      for (
        let next = text.charCodeAt(end);
        isLetterCode(next) ||
        next === 45 ||
        (next === 46 && isLetterCode(text.charCodeAt(end + 1))) ||
        (next >= 48 && next <= 57);
        next = text.charCodeAt(++end)
      );
      return end;
    } else if (BORDER_SIGNS[code] && text.charCodeAt(place - 1) !== code) {
      BORDER.lastIndex = place;
      if (BORDER.test(text)) {
        this.close(place, false);
        this.push(border, false);
      }
    } else if (code >= 48 && code <= 57) {
      // A number is a word, once.
      let end = place + 1;
      while (text.charCodeAt(end) >= 48 && text.charCodeAt(end) <= 57) end++;
      this.word++;
      this.opens = false;
      return end;
    }
    if (CLAUSE[code]) this.opens = true;
    return place + 1;
  }

  /** A line that ends early, or is followed by one that begins with a sign, ends the sentence. */
  private newLine(place: number): number {
    const { text } = this;
    let next = place + 1;
    while (text.charCodeAt(next) === 32) next++;
    const code = text.charCodeAt(next);
    if (place - this.lineStart < 56 || !(isLetterCode(code) || isSpaceless(code))) this.close(place, false);
    if (code === 10) this.quote = 0;
    this.lineStart = place + 1;
    return this.role(next);
  }

  /** `System:` at the beginning of a line. */
  private role(place: number): number {
    ROLE_LINE.lastIndex = place;
    if (!ROLE_LINE.test(this.text)) return place;
    this.close(place, false);
    this.push(role, false);
    return ROLE_LINE.lastIndex;
  }

  private stop(place: number, code: number): number {
    const { text } = this;
    const next = text.charCodeAt(place + 1);
    // Points in numbers, names and versions don't end a sentence.
    if (code === 46 && (isLetterCode(next) || (next >= 48 && next <= 57))) return place + 1;
    if (code === 59) {
      this.opens = true;
      return place + 1;
    }
    this.close(place, code === 63 || code === 0x61f);
    if (place - this.quoteStart > QUOTATION) this.quote = 0;
    return place + 1;
  }

  private bracket(place: number, code: number): number {
    const { text } = this;
    TAG.lastIndex = place;
    if (TAG.test(text)) {
      this.close(place, false);
      this.push(tag, false);
      return TAG.lastIndex;
    }
    this.opens = true;
    if (code !== 60) return place + 1;
    if (text.startsWith('<!--', place)) {
      this.close(place, false);
      this.push(unseen, false);
      return place + 4;
    }
    MARKUP.lastIndex = place;
    if (!MARKUP.test(text)) return place + 1;
    this.close(place, false);
    const end = MARKUP.lastIndex;
    const inside = text.slice(place, end);
    // Several words in an attribute speak to those who read the page's source.
    for (const { index, 0: all, 1: said } of inside.matchAll(ATTRIBUTE))
      this.aside(place + index + all.length - said!.length, said!);
    if (UNSEEN.test(inside)) this.push(unseen, false);
    return end;
  }

  /** Sentences of their own, at this place of the text. */
  private aside(place: number, said: string): void {
    for (const sentence of new Reading(this.words, said, this.runTogether).sentences())
      this.found.push({
        ...sentence,
        text: this.text,
        start: place + sentence.start,
        end: place + sentence.end,
      });
  }

  private quotation(place: number, code: number): number {
    const { text } = this;
    const before = text.charCodeAt(place - 1);
    const next = text.charCodeAt(place + 1);
    this.opens = true;
    if (this.quote === 0) {
      if (code !== 96) {
        const value = this.member(place);
        if (value !== -1) return value;
      }
      const opens = !isLetterCode(before) && next > 32;
      if (opens && text.indexOf(text[place]!, place + 2) !== -1) {
        this.quote = code;
        this.quoteStart = place;
      }
    } else if (code === this.quote && !isLetterCode(next)) this.quote = 0;
    return place + 1;
  }

  /**
   * A member of JSON, or an attribute of a tag: nobody quotes its value, and its name says nothing about it. Returns where the
   * value begins, or -1 where none does.
   */
  private member(place: number): number {
    const { text } = this;
    TAG.lastIndex = place;
    if (TAG.test(text)) {
      this.close(place, false);
      this.push(tag, false);
      return TAG.lastIndex;
    }
    MEMBER.lastIndex = place;
    if (!MEMBER.test(text)) return -1;
    this.close(place, false);
    return MEMBER.lastIndex;
  }
}
