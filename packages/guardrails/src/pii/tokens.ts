/** Placeholders that stand for values in a session, and lead back to them. */
import { randomBytes } from 'node:crypto';
import {
  type Context,
  defineState,
  type GuardContext,
  type Middleware,
  type Restore,
  type Span,
  type ToolContext,
  window,
} from 'allium';
import type { Finding } from '../scan/finding.js';
import { keyedHash, normalised } from './strategies.js';

/** What a session knows: originals by placeholder, and the highest number of each kind that was issued or seen. */
interface Issued {
  readonly originals: Readonly<Record<string, string>>;
  readonly numbers: Readonly<Record<string, number>>;
}

const NUMBERED = /<([A-Z][A-Z0-9_]*)_([1-9][0-9]{0,8})>/g;
/** Those of sub-agents, with part of a hash. */
const HASHED = /<[A-Z][A-Z0-9_]*_[0-9a-f]{6,64}>/g;
/** No placeholder is longer: the longest kind, and part of a hash. */
const LONGEST = 96;

export interface Tokens {
  readonly state: NonNullable<Middleware['state']>;
  /** The placeholder of a value. The same value has the same one for the whole session. */
  placeholder(finding: Finding, value: string, ctx: GuardContext): string;
  /** Text from outside that looks like a placeholder but isn't one, or isn't the one it looks like. */
  strangers(text: string, ctx: GuardContext): Finding[];
  /** Stores what abandoned attempts issued, so that no number is ever issued twice. */
  afterRun(ctx: Context): void;
  readonly restore: Restore;
}

export interface TokenOptions {
  /** Placeholders of sub-agents are made with it. @default random, for this instance */
  readonly key: string | undefined;
  /** The tools that get the originals. */
  readonly tools: boolean | readonly string[];
  /** Also restores for the reader of the answer. */
  readonly answer: boolean;
}

/** The kind of a text that only looks like a placeholder. Its original is that text. */
const LOOKALIKE = 'text';

export function tokens({ key = randomBytes(32).toString('hex'), tools, answer }: TokenOptions): Tokens {
  const state = defineState<Issued>({
    name: 'originals',
    scope: 'session',
    hidden: true,
    // Approvals and caches outlive a rewind, so a number must not come to stand for another value.
    rewinds: false,
    initial: { originals: {}, numbers: {} },
    version: 2,
    migrate: (old) => ({ originals: old as Issued['originals'], numbers: {} }),
  });
  // Attempts and parallel calls don't see each other's writes to a durable cell before they are committed. All of
  // them see this one.
  const live = defineState<Live>({ name: 'issued', scope: 'run', durable: false, create: () => new Live() });
  const liveOf = (context: Context): Live => context.state.get(live).learn(context.state.get(state));
  const commit = (context: Context) =>
    context.state.update(state, (before) => context.state.get(live).merged(before));
  return {
    state: [state, live],
    placeholder({ kind }, value, { context, point }) {
      const known = liveOf(context);
      const name = nameOf(kind);
      // A sub-agent's placeholder for a value that is known here, or one that was issued before.
      const issued = (kind === LOOKALIKE && known.ofHash(value, key)) || known.placeholderOf(name, value);
      if (issued) return issued;
      // A sub-agent has its own session, where numbers start over: they would mean something else to its caller.
      const made =
        context.depth === 0 ? known.number(name) : `<${name}_${keyedHash(value, key).slice(0, 12)}>`;
      known.add(made, value, isFromOutside(point) ? context : undefined);
      commit(context);
      return made;
    },
    strangers(text, { context, point }) {
      if (!isFromOutside(point) || !text.includes('<')) return [];
      const known = liveOf(context);
      const found: Finding[] = [];
      for (const { 0: looks, 1: name, 2: number, index } of text.matchAll(NUMBERED)) {
        if (!known.has(looks)) {
          // It was never issued, and from now on it never will be.
          if (known.reserve(name!, Number(number))) commit(context);
        } else if (known.isNew(looks, context))
          found.push({ start: index, end: index + looks.length, kind: LOOKALIKE });
      }
      for (const { 0: hashed, index } of text.matchAll(HASHED)) {
        if (known.ofHash(hashed, key) !== undefined)
          found.push({ start: index, end: index + hashed.length, kind: LOOKALIKE });
      }
      return found;
    },
    afterRun(context) {
      if (context.state.get(live).isAhead(context.state.get(state))) commit(context);
    },
    restore: {
      find(text, { for: reader, tool, context }) {
        if (reader === 'tool' && tools !== true && !(tools !== false && tools.includes(tool ?? '')))
          return [];
        return issuedIn(text, liveOf(context));
      },
      ...(answer && { answer: window(LONGEST) }),
    },
  };
}

/** What a run knows about placeholders, even those of abandoned attempts. */
class Live {
  private readonly originals = new Map<string, string>();
  private readonly byValue = new Map<string, string>();
  private readonly numbers = new Map<string, number>();
  /** Where something from outside first got a placeholder. */
  private readonly born = new Map<string, Place>();
  private learned: Issued | undefined;

  /** Takes over what the session knows, unless that was done already. */
  learn(issued: Issued): this {
    if (issued === this.learned) return this;
    this.learned = issued;
    for (const [placeholder, value] of Object.entries(issued.originals))
      if (!this.originals.has(placeholder)) this.add(placeholder, value, undefined);
    for (const [name, number] of Object.entries(issued.numbers)) this.reserve(name, number);
    return this;
  }

  has(placeholder: string): boolean {
    return this.originals.has(placeholder);
  }

  original(placeholder: string): string | undefined {
    return this.originals.get(placeholder);
  }

  placeholderOf(name: string, value: string): string | undefined {
    return this.byValue.get(`${name} ${normalised(value)}`);
  }

  /** The placeholder here for the value that a sub-agent's placeholder stands for. */
  ofHash(hashed: string, key: string): string | undefined {
    const [, name, hash] = /^<(.+)_([0-9a-f]{6,64})>$/.exec(hashed) ?? [];
    if (name === undefined) return undefined;
    for (const [placeholder, value] of this.originals)
      if (placeholder.startsWith(`<${name}_`) && keyedHash(value, key).startsWith(hash!)) return placeholder;
    return undefined;
  }

  /** The next of its kind. */
  number(name: string): string {
    return `<${name}_${(this.numbers.get(name) ?? 0) + 1}>`;
  }

  add(placeholder: string, value: string, context: Context | undefined): void {
    const [, name = '', number] = /^<(.+)_([0-9a-f]+)>$/.exec(placeholder) ?? [];
    this.originals.set(placeholder, value);
    const key = `${name} ${normalised(value)}`;
    if (!this.byValue.has(key)) this.byValue.set(key, placeholder);
    if (/^[0-9]{1,9}$/.test(number ?? '')) this.reserve(name, Number(number));
    if (context) this.born.set(placeholder, placeOf(context));
  }

  /** Numbers up to this one are not issued any more. Returns whether that changed anything. */
  reserve(name: string, number: number): boolean {
    if (number <= (this.numbers.get(name) ?? 0)) return false;
    this.numbers.set(name, number);
    return true;
  }

  /** Was it issued for what is judged now? Nobody outside has seen it then. */
  isNew(placeholder: string, context: Context): boolean {
    const born = this.born.get(placeholder);
    const here = placeOf(context);
    return born?.context === here.context && born.result === here.result;
  }

  merged({ originals, numbers }: Issued): Issued {
    const highest: Record<string, number> = { ...numbers };
    for (const [name, number] of this.numbers) highest[name] = Math.max(number, highest[name] ?? 0);
    return { originals: { ...originals, ...Object.fromEntries(this.originals) }, numbers: highest };
  }

  isAhead({ originals, numbers }: Issued): boolean {
    for (const placeholder of this.originals.keys()) if (!Object.hasOwn(originals, placeholder)) return true;
    for (const [name, number] of this.numbers) if (number > (numbers[name] ?? 0)) return true;
    return false;
  }
}

function nameOf(kind: string): string {
  return kind.toUpperCase().replace(/[^A-Z0-9]/g, '_');
}

/**
 * What is judged: a message, or the result of a call. What hooks and layers make of it, and a cache of the result of another
 * call, is judged in another context or is another result.
 */
interface Place {
  readonly context: Context;
  readonly result: unknown;
}

function placeOf(context: Context): Place {
  return { context, result: context.seam === 'tool' ? (context as ToolContext).result : undefined };
}

function isFromOutside(point: GuardContext['point']): boolean {
  return point === 'input' || point === 'tool-result';
}

/** A placeholder that was never issued, for example one that a model made up, stays text. */
function issuedIn(text: string, known: Live): readonly Span[] {
  const spans: Span[] = [];
  for (const pattern of [NUMBERED, HASHED])
    for (const { 0: placeholder, index } of text.matchAll(pattern)) {
      const replacement = known.original(placeholder);
      if (replacement !== undefined && !spans.some(({ start }) => start === index))
        spans.push({ start: index, end: index + placeholder.length, replacement });
    }
  return spans;
}
