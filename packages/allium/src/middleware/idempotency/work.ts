/** The work of tools, which may go on when its call has been given up: not every tool hears an abort. */

import { Lru } from '../../caching/lru.js';
import type { Tool } from '../../index.js';
import { childFailure, isRecord, withExecute } from '../../kit/index.js';

interface Work {
  readonly value: Promise<unknown>;
  /** Resolves when that has come to something, or has failed and is forgotten. */
  readonly over: Promise<void>;
  /** After that it isn't waited for, and its result is forgotten. */
  readonly until: number;
}

/** Works whose results nobody took are forgotten when there are more. */
const MOST = 1000;

export class Works {
  private readonly works = new Lru<Work>(MOST);

  /** The same tool, but it takes over what an earlier attempt with this key began, and only begins again if that failed. */
  joined(tool: Tool, key: string, now: () => number, ttlMs: number): Tool {
    const execute: Tool['execute'] = async (args, ctx) => {
      for (let work = this.works.get(key); work !== undefined; work = this.works.get(key)) {
        if (now() >= work.until) break;
        await work.over;
        ctx.signal.throwIfAborted();
        if (this.works.get(key) === work) return work.value;
      }
      return this.begin(key, async () => tool.execute(args, ctx), now() + ttlMs);
    };
    return withExecute(tool, execute);
  }

  /** Its result has arrived. */
  taken(key: string): void {
    this.works.delete(key);
  }

  private begin(key: string, start: () => Promise<unknown>, until: number): Promise<unknown> {
    const value = start();
    const forget = (): void => {
      if (this.works.get(key) === work) this.works.delete(key);
    };
    // A sub-agent that fails doesn't throw; its result says so.
    const over = value.then((result) => {
      if (isRecord(result) && childFailure(result as { details: unknown }) !== undefined) forget();
    }, forget);
    const work: Work = { value, over, until };
    this.works.set(key, work);
    return value;
  }
}
