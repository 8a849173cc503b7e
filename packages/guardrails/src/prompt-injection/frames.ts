/**
 * What injections do, as pairs of concepts that stand close together: a verb and what it is done to. A frame says nothing about
 * the words and hardly anything about the language.
 */
import type { Concept } from './lexicon.js';

export interface Frame {
  readonly name: string;
  readonly first: readonly Concept[];
  readonly second: readonly Concept[];
  /** How many words they may be apart. @default 9 */
  readonly within?: number;
  /** The second may also come first. @default true */
  readonly eitherWay?: boolean;
  /** Only near one of these. */
  readonly beside?: readonly Concept[];
  /** What may stand beside it and makes it harmless. @default `ALWAYS` */
  readonly mutedBy?: readonly Mute[];
}

/**
 * Why a frame isn't an order: it is about something of the writer, a thing or somebody else; it is denied, asked, or reported;
 * it stands among words about attacks; it says what somebody wants to do; or its two ends have little to do with each other.
 */
export type Mute = 'elsewhere' | 'not' | 'asks' | 'about' | 'told' | 'to' | 'sparse';

const ALWAYS: readonly Mute[] = ['about', 'told', 'not', 'sparse'];
const OVERRIDE: readonly Mute[] = [...ALWAYS, 'elsewhere', 'asks', 'to'];
const LEAK: readonly Mute[] = [...ALWAYS, 'elsewhere', 'to'];

/** Frames without reasons of their own have these. */
export const MUTED_BY = ALWAYS;

export const FRAMES: readonly Frame[] = [
  // What was said before no longer counts.
  { name: 'override', first: ['ignore'], second: ['rules', 'prompt', 'system'], mutedBy: OVERRIDE },
  {
    name: 'outrank',
    first: ['outrank'],
    second: ['rules', 'prompt', 'system', 'former'],
    within: 6,
    mutedBy: ['about', 'asks', 'sparse'],
  },
  { name: 'lift', first: ['drop'], second: ['rules', 'prompt', 'system', 'safety'], mutedBy: OVERRIDE },
  {
    name: 'start-over',
    first: ['ignore', 'drop'],
    second: ['former'],
    within: 7,
    eitherWay: false,
    mutedBy: OVERRIDE,
  },
  { name: 'ignore-all', first: ['ignore'], second: ['all'], within: 2, eitherWay: false, mutedBy: OVERRIDE },
  {
    name: 'all-ignored',
    first: ['former', 'all'],
    second: ['ignore'],
    within: 7,
    eitherWay: false,
    mutedBy: OVERRIDE,
  },
  { name: 'unsafe', first: ['ignore', 'drop'], second: ['safety', 'refuse'], mutedBy: OVERRIDE },
  {
    name: 'without-rules',
    first: ['neg'],
    second: ['rules', 'safety'],
    within: 4,
    eitherWay: false,
    mutedBy: OVERRIDE,
  },
  {
    name: 'disobey',
    first: ['neg'],
    second: ['obey'],
    within: 3,
    eitherWay: false,
    beside: ['rules', 'prompt', 'system', 'safety', 'authority'],
    mutedBy: ['about', 'told', 'asks', 'elsewhere', 'to'],
  },
  {
    name: 'ignore-user',
    first: ['ignore', 'neg'],
    second: ['user'],
    within: 5,
    eitherWay: false,
    mutedBy: OVERRIDE,
  },
  {
    name: 'new-rules',
    first: ['new'],
    second: ['rules', 'prompt', 'system', 'task'],
    within: 3,
    beside: ['you', 'your', 'now', 'must', 'tag', 'role', 'border', 'ai'],
    mutedBy: OVERRIDE,
  },
  {
    name: 'your-rules',
    first: ['your'],
    second: ['rules', 'prompt', 'system', 'safety', 'task'],
    within: 3,
    eitherWay: false,
    mutedBy: OVERRIDE,
  },
  {
    name: 'former-rules',
    first: ['former'],
    second: ['rules', 'prompt', 'system'],
    within: 3,
    mutedBy: OVERRIDE,
  },
  {
    name: 'told',
    first: ['rules', 'prompt', 'system'],
    second: ['you'],
    within: 4,
    eitherWay: false,
    mutedBy: OVERRIDE,
  },
  // Who may say what it does.
  { name: 'obey-me', first: ['obey'], second: ['my', 'i'], within: 4, eitherWay: false },
  {
    name: 'authority',
    first: ['authority'],
    second: ['must', 'approved', 'your', 'you'],
    within: 7,
    mutedBy: [...ALWAYS, 'asks', 'to'],
  },
  { name: 'claimed', first: ['i'], second: ['authority'], within: 5, eitherWay: false },
  {
    name: 'approved',
    first: ['approved'],
    second: ['act', 'send', 'reveal', 'you', 'tool'],
    within: 8,
    mutedBy: [...ALWAYS, 'asks', 'to'],
  },
  { name: 'my-word', first: ['my', 'i'], second: ['ignore', 'outrank'], within: 4, eitherWay: false },
  // Another self.
  {
    name: 'persona',
    first: ['persona'],
    second: ['unbound', 'dan', 'neg', 'ignore'],
    within: 12,
    mutedBy: [...ALWAYS, 'asks', 'to'],
  },
  {
    name: 'persona-ai',
    first: ['persona'],
    second: ['ai', 'authority', 'mode'],
    within: 8,
    mutedBy: OVERRIDE,
  },
  {
    name: 'renamed',
    first: ['renamed'],
    second: ['ai', 'unbound', 'dan', 'authority', 'mode', 'neg', 'my', 'obey', 'ignore', 'secret'],
    within: 12,
    mutedBy: [...ALWAYS, 'asks'],
  },
  {
    name: 'unbound',
    first: ['you', 'your', 'ai', 'respond', 'now'],
    second: ['unbound', 'dan'],
    within: 10,
    mutedBy: [...ALWAYS, 'asks', 'to'],
  },
  {
    name: 'mode',
    first: ['enable', 'now', 'persona', 'you', 'authority'],
    second: ['mode', 'dan'],
    within: 5,
    mutedBy: OVERRIDE,
  },
  // What it was told in secret.
  {
    name: 'leak',
    first: ['reveal', 'say', 'send'],
    second: ['prompt'],
    beside: ['you', 'your', 'ai', 'secret', 'verbatim', 'former', 'all'],
    mutedBy: LEAK,
  },
  {
    name: 'leak-system',
    first: ['reveal', 'say', 'send', 'verbatim', 'question'],
    second: ['system'],
    within: 7,
    mutedBy: ['about', 'told', 'not', 'elsewhere', 'to'],
  },
  {
    name: 'leak-rules',
    first: ['reveal', 'say'],
    second: ['rules', 'secret', 'data'],
    beside: ['you', 'your', 'ai', 'secret', 'verbatim', 'former'],
    mutedBy: LEAK,
  },
  {
    name: 'leak-text',
    first: ['reveal', 'say'],
    second: ['former'],
    within: 6,
    eitherWay: false,
    mutedBy: LEAK,
  },
  {
    name: 'verbatim',
    first: ['verbatim'],
    second: ['prompt', 'rules', 'system', 'former', 'secret'],
    within: 12,
    mutedBy: LEAK,
  },
  // Where data goes, and who hears of it.
  { name: 'give-away', first: ['reveal', 'say'], second: ['data'], within: 6, mutedBy: LEAK },
  { name: 'exfiltrate', first: ['send'], second: ['data'], mutedBy: [...ALWAYS, 'asks', 'to'] },
  {
    name: 'to-address',
    first: ['send', 'data', 'act', 'say', 'reveal'],
    second: ['url'],
    within: 12,
    mutedBy: [...ALWAYS, 'asks', 'to'],
  },
  {
    name: 'conceal',
    first: ['conceal'],
    second: ['user', 'inform', 'act', 'send', 'obey', 'note', 'rules', 'reveal', 'and'],
    within: 12,
  },
  {
    name: 'keep-from',
    first: ['neg'],
    second: ['inform', 'say', 'reveal'],
    within: 3,
    eitherWay: false,
    beside: ['user', 'note', 'rules'],
    mutedBy: ['about', 'told'],
  },
  { name: 'not-tell', first: ['neg'], second: ['inform', 'say', 'reveal'], within: 3, eitherWay: false },
  // To whom it speaks.
  { name: 'address', first: ['note'], second: ['ai'], within: 6 },
  { name: 'address-agent', first: ['note'], second: ['agent', 'called'], within: 6 },
  {
    name: 'called',
    first: ['called'],
    second: [
      'ignore',
      'drop',
      'must',
      'act',
      'send',
      'obey',
      'say',
      'respond',
      'reveal',
      'neg',
      'now',
      'you',
      'your',
      'if',
      'reading',
    ],
    within: 14,
    eitherWay: false,
  },
  {
    name: 'reader',
    first: ['reading'],
    second: ['ai', 'agent', 'must', 'you', 'respond', 'act', 'send'],
    within: 10,
    mutedBy: [...ALWAYS, 'asks', 'to'],
  },
  {
    name: 'ai-must',
    first: ['ai'],
    second: ['must', 'obey', 'act', 'send'],
    within: 8,
    eitherWay: false,
    mutedBy: [...ALWAYS, 'asks', 'to'],
  },
  { name: 'you-must', first: ['you'], second: ['must'], within: 2, eitherWay: false },
  {
    name: 'use-tool',
    first: ['act', 'obey', 'send', 'must'],
    second: ['tool'],
    within: 6,
    eitherWay: false,
    mutedBy: [...ALWAYS, 'asks', 'to'],
  },
  // How it is to answer.
  {
    name: 'not-refuse',
    first: ['neg'],
    second: ['refuse'],
    within: 4,
    eitherWay: false,
    mutedBy: [...ALWAYS, 'asks', 'to'],
  },
  {
    name: 'answer-with',
    first: ['respond'],
    second: ['verbatim', 'neg', 'unbound', 'new', 'act'],
    within: 7,
    eitherWay: false,
    mutedBy: [...ALWAYS, 'asks', 'to'],
  },
  {
    name: 'instead',
    first: ['instead', 'now'],
    second: ['say', 'act', 'send', 'respond', 'obey', 'reveal'],
    within: 5,
  },
  {
    name: 'decode',
    first: ['decode'],
    second: ['obey', 'act', 'rules', 'respond'],
    within: 12,
    mutedBy: [...ALWAYS, 'asks', 'to'],
  },
  {
    name: 'remember',
    first: ['remember'],
    second: ['rules', 'you', 'must', 'neg', 'ignore', 'authority'],
    within: 10,
    mutedBy: [...ALWAYS, 'asks', 'to'],
  },
  {
    name: 'marked',
    first: ['tag', 'role', 'border', 'unseen'],
    second: [
      'ai',
      'you',
      'your',
      'ignore',
      'rules',
      'must',
      'act',
      'send',
      'obey',
      'unbound',
      'say',
      'conceal',
      'persona',
      'approved',
      'prompt',
      'reveal',
      'respond',
      'new',
    ],
    within: 14,
  },
];

/** A frame is about the model, and about what it was told, near one of these. */
export const DIRECTED: readonly Concept[] = ['you', 'your', 'ai', 'former', 'secret'];
/** About something else: what the writer said, things, other people. */
export const ELSEWHERE: readonly Concept[] = ['my', 'thing', 'third'];
