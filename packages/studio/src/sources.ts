/** Where journals come from: the store, files somebody opened, and what was played here. Nothing is written. */
import type { Entry, ListOptions, SessionInfo, Store } from 'allium';

type SessionPage = Awaited<ReturnType<Store['list']>>;
type Posted = Awaited<ReturnType<Store['take']>>;

/** Reads sessions of several stores as if they were one. The first that has a session is its home. */
export class Sources {
  constructor(
    readonly main: Store,
    /** In memory, so asking them costs nothing. */
    readonly own: readonly Store[] = [],
  ) {}

  async storeOf(sessionId: string): Promise<Store> {
    for (const store of this.own) if ((await store.head(sessionId)) > 0) return store;
    return this.main;
  }

  async read(sessionId: string, fromSeq = 1): Promise<readonly Entry[]> {
    return (await this.storeOf(sessionId)).read(sessionId, fromSeq);
  }

  /** Looks at an inbox without taking anything out of it. */
  async inbox(sessionId: string): Promise<Posted> {
    return (await this.storeOf(sessionId)).take(sessionId, 0);
  }

  async list(options: ListOptions): Promise<SessionPage> {
    const page = await this.main.list(options);
    if (options.cursor !== undefined) return page;
    const { cursor: _, ...first } = options;
    const own: SessionInfo[] = [];
    for (const store of this.own) own.push(...(await store.list({ ...first, limit: 500 })).sessions);
    if (own.length === 0) return page;
    const sessions = [...own, ...page.sessions].sort((a, b) => b.updatedAt - a.updatedAt);
    return { ...page, sessions };
  }
}
