/** Breaks `delete-sub-agents`: what sub-agents said stays when the session of their agent is deleted. */
import { memoryStore, type Store } from '../../../index.js';
import { parentOf } from '../../../stores/kit/index.js';
import { broken } from './delegate.js';

export function transcriptKeepingStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    delete(id) {
      const { sessions } = inner.list({ limit: 1000 });
      const kept = sessions.flatMap(({ sessionId, seq }) =>
        parentOf(sessionId) === id ? [{ sessionId, seq, entries: inner.read(sessionId, 1) }] : [],
      );
      inner.delete(id);
      for (const { sessionId, entries } of kept)
        inner.append(
          sessionId,
          0,
          entries.map(({ seq: _, ...entry }) => entry),
        );
    },
  });
}
