/** Which signs begin a clause, and which concepts do what in one. */
import { CONCEPTS, type Concept } from './lexicon.js';

/** The number of each concept. */
export const conceptIndex = Object.fromEntries(CONCEPTS.map((name, i) => [name, i])) as Record<
  Concept,
  number
>;

const flagsOf = (codes: string): boolean[] => {
  const flags: boolean[] = [];
  for (const sign of codes) flags[sign.charCodeAt(0)] = true;
  return flags;
};

export const CLAUSE = flagsOf(',:([{>*-–—•"\'`');
export const BORDER_SIGNS = flagsOf('#=-*~_></');

const conceptFlags = (...names: Concept[]): boolean[] => {
  const flags: boolean[] = [];
  for (const name of names) flags[conceptIndex[name]] = true;
  return flags;
};

/** Verbs. */
export const VERBS = conceptFlags(
  'ignore',
  'drop',
  'reveal',
  'say',
  'send',
  'obey',
  'act',
  'inform',
  'persona',
  'enable',
  'respond',
  'refuse',
  'decode',
  'remember',
);

/** These may stand before an order: it is still an order. */
export const OPENERS = conceptFlags(
  'please',
  'and',
  'now',
  'must',
  'instead',
  'note',
  'neg',
  'ai',
  'if',
  'role',
  'tag',
  'border',
);
/** An order may begin after these, wherever they stand. */
export const CHAINERS = conceptFlags('please', 'and', 'must', 'instead');
