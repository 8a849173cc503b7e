/** Placeholders that stand for values in a session, and lead back to them. */
import { randomBytes } from 'node:crypto';
import { defineState, type GuardContext, type Restore, type Span, type StateCell, window } from 'allium';
import type { Finding } from '../scan/finding.js';
import { isSameValue, keyedHash } from './strategies.js';

/** Originals by placeholder. */
type Originals = Readonly<Record<string, string>>;

const PLACEHOLDER = /<[A-Z][A-Z0-9_-]*_[0-9a-f]{6,64}>/g;
/** No placeholder is longer: the longest kind, and a whole hash. */
const LONGEST = 96;

export interface Tokens {
  /** The map of the session. No event or trace shows it. */
  readonly state: StateCell<Originals>;
  /** The placeholder of a value. The same value has the same one for the whole session. */
  placeholder(finding: Finding, value: string, ctx: GuardContext): string;
  readonly restore: Restore;
}

export interface TokenOptions {
  /** Placeholders are made with it. @default random, for this instance */
  readonly key: string | undefined;
  /** The tools that get the originals. */
  readonly tools: boolean | readonly string[];
  /** Also the reader of the answer. */
  readonly answer: boolean;
}

export function tokens({ key = randomBytes(32).toString('hex'), tools, answer }: TokenOptions): Tokens {
  const state = defineState<Originals>({ name: 'originals', scope: 'session', hidden: true, initial: {} });
  return {
    state,
    placeholder({ kind }, value, { context }) {
      const originals = context.state.get(state);
      // Issued before, perhaps by a process with another key.
      for (const [placeholder, original] of Object.entries(originals))
        if (isSameValue(original, value) && placeholder.startsWith(`<${nameOf(kind)}_`)) return placeholder;
      const placeholder = unused(nameOf(kind), keyedHash(value, key), originals);
      context.state.update(state, (before) => ({ ...before, [placeholder]: value }));
      return placeholder;
    },
    restore: {
      find(text, { for: reader, tool, context }) {
        if (reader === 'tool' && tools !== true && !(tools !== false && tools.includes(tool ?? '')))
          return [];
        return issued(text, context.state.get(state));
      },
      ...(answer && { answer: window(LONGEST) }),
    },
  };
}

function nameOf(kind: string): string {
  return kind.toUpperCase().replace(/[^A-Z0-9]/g, '_');
}

/** As many digits of the hash as it takes to tell two values apart. */
function unused(name: string, hash: string, originals: Originals): string {
  let length = 6;
  while (length < hash.length && Object.hasOwn(originals, `<${name}_${hash.slice(0, length)}>`)) length += 2;
  return `<${name}_${hash.slice(0, length)}>`;
}

/** A placeholder that was never issued, such as one that a model made up, stays text. */
function issued(text: string, originals: Originals): readonly Span[] {
  const spans: Span[] = [];
  for (const { 0: placeholder, index } of text.matchAll(PLACEHOLDER))
    if (Object.hasOwn(originals, placeholder))
      spans.push({ start: index, end: index + placeholder.length, replacement: originals[placeholder]! });
  return spans;
}
