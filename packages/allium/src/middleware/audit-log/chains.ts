/** The chains of lines of runs in progress. */

import type { Awaitable, Context } from '../../index.js';
import { isThenable } from '../../kit/index.js';
import type { Anchor } from './anchor.js';
import { textOfFields } from './lines.js';
import type { Sink } from './sinks.js';

/** The chain of a session, as a run continues it. */
export interface Chain {
  readonly run: string;
  readonly session: string;
  anchor: Anchor;
  /** Two that resume one run at once share its chain, until the journal refuses one of them. */
  runners: number;
  /** How its lines begin, up to their number. */
  readonly head: string;
  /** Lines of a session are written one after the other. This is the current write. */
  last: Promise<void> | undefined;
  /** Calls of the latest batch that have begun, and the id of its message. */
  batch: string;
  begun: string[];
}

/**
 * Chains by run and session: agents that share this may have sessions of the same name, and a fork continues the run
 * of its source. Parallel calls don't see each other's cells, so the end of a chain is kept here, too.
 */
export class Chains {
  readonly #chains = new Map<string, Map<string, Chain>>();
  /** The last one asked for: usually a run asks several times before another one does. */
  #recent: Chain | undefined;

  of({ runId, sessionId }: Context): Chain | undefined {
    if (this.#recent?.run !== runId || this.#recent.session !== sessionId)
      this.#recent = this.#chains.get(runId)?.get(sessionId);
    return this.#recent;
  }

  /** A run begins, or is resumed, where its session's chain ends. */
  begin(ctx: Context, anchor: Anchor): void {
    const { sessionId: session, runId: run } = ctx;
    const shared = this.of(ctx);
    if (shared) {
      shared.runners++;
      return;
    }
    const ofRun = this.#chains.get(run) ?? new Map<string, Chain>();
    this.#chains.set(run, ofRun);
    const head = `{${textOfFields({ v: 1, session, run })},"seq":`;
    ofRun.set(session, { run, session, anchor, runners: 1, head, last: undefined, batch: '', begun: [] });
  }

  end({ run, session }: Chain): void {
    const ofRun = this.#chains.get(run)!;
    if (--ofRun.get(session)!.runners > 0) return;
    ofRun.delete(session);
    if (ofRun.size === 0) this.#chains.delete(run);
    this.#recent = undefined;
  }
}

/** Waits for the lines before it and for the sink, but only if there is something to wait for. */
export function writeIn(chain: Chain, sink: Sink, line: string): Awaitable<void> {
  const { last } = chain;
  const done = last === undefined ? sink.write(line) : last.then(() => sink.write(line));
  if (!isThenable(done)) return;
  const written = Promise.resolve(done);
  const end = written.then(ignore, ignore).then(() => {
    if (chain.last === end) chain.last = undefined;
  });
  chain.last = end;
  return written;
}

function ignore(): void {}
