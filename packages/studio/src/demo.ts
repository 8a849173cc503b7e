/** Studio over recorded runs: no config, no keys, no network. */
import { readFileSync } from 'node:fs';
import type { NewEntry } from 'allium';
import { memoryStore } from 'allium/stores/memory';
import { demoAgent } from './demo-agent.js';
import { type Studio, type StudioOptions, startStudio } from './start.js';

interface RecordedSession {
  readonly sessionId: string;
  readonly entries: readonly NewEntry[];
}

/** The newest recorded run ended this long ago. */
const AGO_MS = 40_000;

/**
 * Serves Studio with recorded runs of a support desk, and that desk to play with. What happens in it is forgotten when it ends.
 *
 * @example
 * const studio = await startDemo();
 * console.log(studio.url);
 */
export async function startDemo(options: Pick<StudioOptions, 'port' | 'token'> = {}): Promise<Studio> {
  const store = memoryStore();
  for (const { sessionId, entries } of recorded(Date.now() - AGO_MS))
    await store.append(sessionId, 0, entries);
  const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
  const agent = demoAgent({ store, pause });
  return startStudio({
    ...options,
    store,
    storeName: 'recorded runs',
    agents: [agent],
    allowAnswers: true,
    demo: true,
    async onAnswered(sessionId, tenant) {
      // The recorded process is gone, so the run continues in this one.
      await agent.session(sessionId, tenant === undefined ? {} : { tenant }).resume();
    },
  });
}

/** The recording with its times moved, so that it ends at this one. */
function recorded(end: number): readonly RecordedSession[] {
  const lines = readFileSync(new URL('../demo/runs.jsonl', import.meta.url), 'utf8')
    .trim()
    .split('\n');
  const sessions = lines.map((line) => JSON.parse(line) as RecordedSession);
  const last = Math.max(...sessions.map(({ entries }) => entries.at(-1)?.at ?? 0));
  return sessions.map(({ sessionId, entries }) => ({
    sessionId,
    entries: entries.map((entry) => moved(entry, end - last)),
  }));
}

function moved(entry: NewEntry, ms: number): NewEntry {
  const at = entry.at + ms;
  if (entry.type === 'trace')
    return { ...entry, at, records: entry.records.map((one) => ({ ...one, at: one.at + ms })) };
  if (entry.type !== 'request') return { ...entry, at };
  return { ...entry, at, request: { ...entry.request, createdAt: entry.request.createdAt + ms } };
}
