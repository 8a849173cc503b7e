/** Keeps a conversation to some topics, or away from others. */
import type { Middleware, Model } from 'allium';
import { checkFields, invalidOption, type Kind, kinds, type OptionsOf } from 'allium/kit';
import { JUDGE_FIELDS, judged, PARALLEL_FIELD } from '../asking/judge.js';
import { COMMON_FIELDS, guardrailOf } from '../scan/guard.js';
import { wordPattern } from '../scan/patterns.js';
import { readPlain } from '../scan/plain.js';
import { textsOf } from '../scan/texts.js';

/** Names of topics, or words by topic. Without a model, the name of a topic is its only word. */
export type Topics = readonly string[] | Readonly<Record<string, readonly string[]>>;

const topicList = kinds.either(kinds.names, kinds.recordOf(kinds.names)) as Kind<Topics>;

export const OPTIONS = {
  ...COMMON_FIELDS,
  ...JUDGE_FIELDS,
  ...PARALLEL_FIELD,
  /** A text must be about one of these. */
  allow: topicList,
  /** A text may not be about one of these. */
  deny: topicList,
  /** Says what a text is about. @default words decide */
  model: kinds.model<Model>(),
};

export type TopicsOptions = OptionsOf<typeof OPTIONS>;

/**
 * Refuses texts that are off topic: by words, or by what a model says they are about.
 *
 * @example
 * topics({ deny: { politics: ['election', 'senator'] } });
 */
export function topics(options: TopicsOptions): Middleware {
  checkFields('topics()', OPTIONS, options);
  const { allow, deny, model, timeoutMs, onUnclear, clock, parallel = false } = options;
  if (allow === undefined && deny === undefined)
    throw invalidOption('deny', 'topics, unless `allow` has some', deny);
  const own = { kind: 'topics', points: ['input'], action: 'block' } as const;
  if (model) {
    const policy = [
      ...(allow ? [`The text must be about one of these topics, or be small talk: ${namesOf(allow)}.`] : []),
      ...(deny ? [`The text may not be about any of these topics: ${namesOf(deny)}.`] : []),
    ].join('\n');
    return guardrailOf(
      options,
      { ...own, more: { extraLlmCalls: () => [model] } },
      {
        ...(parallel && { parallel }),
        judge: (subject, ctx) =>
          judged(subject, ctx, { model, policy, kind: 'off-topic', timeoutMs, onUnclear, clock }),
      },
    );
  }
  const allowed = wordsOf('allow', allow);
  const denied = wordsOf('deny', deny);
  return guardrailOf(options, own, {
    judge(subject) {
      const text = textsOf(subject);
      const topic = denied.find(([, has]) => has(text))?.[0];
      if (topic !== undefined)
        return {
          type: 'deny',
          reason: `The topic ${topic} is not allowed.`,
          kind: kindOf(topic),
          severity: 'medium',
        };
      if (allowed.length === 0 || text.trim() === '' || allowed.some(([, has]) => has(text)))
        return undefined;
      return {
        type: 'deny',
        reason: `Only these topics are allowed: ${namesOf(allow!)}.`,
        kind: 'off-topic',
        severity: 'medium',
      };
    },
  });
}

function namesOf(topics: Topics): string {
  return (Array.isArray(topics) ? topics : Object.keys(topics)).join(', ');
}

/** The name of a topic, as the kind of a verdict. */
function kindOf(topic: string): string {
  return topic.replace(/[^\w.:/-]+/g, '-').slice(0, 64);
}

/** Each topic, and whether a text has one of its words. */
function wordsOf(option: string, topics: Topics | undefined): [string, (text: string) => boolean][] {
  if (topics === undefined) return [];
  const words = Array.isArray(topics)
    ? topics.map((name) => [name, [name]] as const)
    : Object.entries(topics);
  return words.map(([name, words]) => {
    if (!Array.isArray(topics) && !/^[A-Za-z0-9_.:/-]{1,64}$/.test(name))
      throw invalidOption(`${option}.${name}`, 'a name of up to 64 letters, digits and dashes', name);
    const search = wordPattern(words);
    return [
      name,
      (text) => {
        let found = false;
        // Also as it reads without invisible, full-width and encoded characters.
        for (const read of [text, readPlain(text).text])
          search(read, () => {
            found = true;
          });
        return found;
      },
    ];
  });
}
