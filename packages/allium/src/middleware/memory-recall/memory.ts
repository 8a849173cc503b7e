/** The port for memories, and a memory in this process. */

import type { Awaitable } from '../../index.js';
import { checkInteger, checkOptions } from '../../kit/index.js';

export interface MemoryItem {
  /** Saving an item again under the same id replaces it. */
  readonly id: string;
  readonly text: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** The session it is from. */
  readonly sessionId?: string;
}

/** Whose memory. Nothing of one tenant may ever be recalled for another, nor for none. */
export interface MemoryScope {
  readonly tenant?: string;
  /** Only what this session saved. */
  readonly sessionId?: string;
}

/**
 * A memory.
 *
 * Contract: `recall` returns at most `k` items of the scope, the best first, without those of `exceptSession`. Both may
 * throw or take too long: the run goes on without. `signal` aborts when nobody waits any more.
 */
export interface Memory {
  recall(
    query: string,
    k: number,
    scope: MemoryScope,
    options: { readonly signal: AbortSignal; readonly exceptSession?: string },
  ): Awaitable<readonly MemoryItem[]>;
  save(
    items: readonly MemoryItem[],
    scope: MemoryScope,
    options: { readonly signal: AbortSignal },
  ): Awaitable<void>;
}

/** An owner for each tenant, and one for no tenant, all different. */
export function ownerOf({ tenant }: MemoryScope): string {
  return JSON.stringify([tenant ?? null]);
}

const MAX_TERMS = 64;

/** The words of a text, each once, without case and accents. */
function termsOf(text: string): readonly string[] {
  const plain = text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
  return [...new Set(plain.match(/[\p{L}\p{N}]+/gu))];
}

export function queryTerms(query: string): readonly string[] {
  return termsOf(query).slice(0, MAX_TERMS);
}

interface Kept {
  readonly item: MemoryItem;
  readonly terms: ReadonlySet<string>;
}

/**
 * A memory in this process, for tests and small tools. Items are ranked by the words they share with the query; rare
 * words count more. Each recall looks at every item of the tenant.
 */
export function localMemory(
  options: {
    /** Items kept for each tenant; the oldest go first: an integer ≥ 1. @default 1000 */ readonly maxItems?: number;
  } = {},
): Memory {
  checkOptions('localMemory', options, ['maxItems']);
  const { maxItems = 1000 } = options;
  checkInteger('maxItems', maxItems, 1);
  const owners = new Map<string, Map<string, Kept>>();
  return {
    recall(query, k, scope, { exceptSession }) {
      const mine = [...(owners.get(ownerOf(scope))?.values() ?? [])].filter(
        ({ item: { sessionId } }) =>
          (scope.sessionId === undefined || sessionId === scope.sessionId) &&
          (exceptSession === undefined || sessionId !== exceptSession),
      );
      return best(mine, queryTerms(query)).slice(0, k);
    },
    save(items, scope) {
      const owner = ownerOf(scope);
      const mine = owners.get(owner) ?? new Map<string, Kept>();
      owners.set(owner, mine);
      for (const item of items) {
        mine.delete(item.id);
        mine.set(item.id, { item, terms: new Set(termsOf(item.text)) });
      }
      for (const id of mine.keys()) {
        if (mine.size <= maxItems) break;
        mine.delete(id);
      }
    },
  };
}

/** Items that share a word with the query, the best first; of two equally good ones, the newer. */
function best(kept: readonly Kept[], terms: readonly string[]): readonly MemoryItem[] {
  const weights = terms.map((term) => {
    const having = kept.reduce((sum, one) => sum + (one.terms.has(term) ? 1 : 0), 0);
    return Math.log(1 + (kept.length - having + 0.5) / (having + 0.5));
  });
  return kept
    .map(({ item, terms: has }) => ({
      item,
      score: terms.reduce((sum, term, i) => sum + (has.has(term) ? weights[i]! : 0), 0),
    }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || b.item.at - a.item.at)
    .map(({ item }) => item);
}
