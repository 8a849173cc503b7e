/** Ways to cut up an answer: the same content, in other pieces. */
import type { ModelPart } from '../../index.js';
import { type ScriptStep, toStep } from '../scripted-model.js';
import type { Scenario } from './scenarios.js';

/** Cuts text into pieces that join to it again. */
export interface Chunking {
  readonly name: string;
  readonly cut: (text: string) => readonly string[];
}

const FIXED: readonly Chunking[] = [
  ...[1, 2, 3, 7].map((size) => ({
    name: `pieces of ${size}`,
    cut: (text: string) => pieces(text, () => size),
  })),
  {
    name: 'empty pieces in between',
    cut: (text) => ['', ...pieces(text, () => 4).flatMap((piece) => [piece, ''])],
  },
  { name: 'all but the last character', cut: (text) => [text.slice(0, -1), text.slice(-1)] },
  { name: 'the first character and the rest', cut: (text) => [text.slice(0, 1), text.slice(1)] },
];

/** A few fixed ones, and `count` random ones, which are the same for the same seed. */
export function chunkings(seed: number, count: number): readonly Chunking[] {
  const random = generator(seed);
  const made = Array.from({ length: count }, (_, i) => {
    const most = 1 + Math.floor(random() * 24);
    const own = Math.floor(random() * 2 ** 31);
    return {
      name: `random pieces (seed ${seed}, number ${i + 1})`,
      cut: (text: string) => {
        const next = generator(own);
        return pieces(text, () => Math.floor(next() * (most + 1)));
      },
    };
  });
  return [...FIXED, ...made];
}

/** The scenario with every answer cut up. */
export function rechunked(scenario: Scenario, { cut }: Chunking): Scenario {
  return { ...scenario, answers: scenario.answers.map((answer) => cutStep(whole(toStep(answer)), cut)) };
}

/** The scenario with every answer in as few pieces as possible. */
export function unchunked(scenario: Scenario): Scenario {
  return { ...scenario, answers: scenario.answers.map((answer) => whole(toStep(answer))) };
}

function whole(step: ScriptStep): ScriptStep {
  const parts: ModelPart[] = [];
  for (const part of step.parts) {
    const last = parts.at(-1);
    if (part === 'tick') continue;
    if (
      (part.type === 'text' || part.type === 'thinking') &&
      last?.type === part.type &&
      last.block === part.block
    ) {
      parts[parts.length - 1] = { ...last, ...part, text: last.text + part.text };
    } else parts.push(part);
  }
  return { ...step, parts };
}

function cutStep(step: ScriptStep, cut: Chunking['cut']): ScriptStep {
  // Keep an empty text as one empty piece: without a piece there would be no block.
  const cutAll = (text: string) => (text === '' ? [''] : cut(text));
  const parts = (step.parts as readonly ModelPart[]).flatMap((part): ModelPart[] => {
    if (part.type === 'text' || part.type === 'thinking')
      return cutAll(part.text).map((text) => ({ ...part, text }));
    if (part.type !== 'tool-call') return [part];
    const { id } = part;
    const deltas = cutAll(part.arguments).map(
      (piece): ModelPart => ({ type: 'tool-call-delta', id, arguments: piece }),
    );
    return [{ ...part, arguments: '' }, ...deltas];
  });
  return { ...step, parts: parts.flatMap((part, i) => (i % 5 === 4 ? ['tick' as const, part] : [part])) };
}

function pieces(text: string, size: () => number): string[] {
  const made: string[] = [];
  for (let at = 0; at < text.length; ) {
    const length = size();
    made.push(text.slice(at, at + length));
    at += length;
  }
  return made;
}

/** Random numbers from 0 up to 1, the same for the same seed (mulberry32). */
export function generator(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
