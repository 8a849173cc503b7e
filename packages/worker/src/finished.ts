/** Waits for the end of a run. */
import { AlliumError } from 'allium';
import { jobOf, type Outcome } from './jobs.js';
import type { Backend } from './options.js';

/** The outcome of a run, once it has one. Rejects if the signal aborts first. */
export async function whenFinished(
  { turns, connections }: Backend,
  runId: string,
  signal: AbortSignal | undefined,
): Promise<Outcome> {
  const id = jobOf(runId);
  signal?.throwIfAborted();
  const unknown = () => new AlliumError('SESSION_UNKNOWN', `There is no job "${id}", or it ended long ago.`);
  const known = await turns.known(id);
  if (!known) throw unknown();
  if (known.outcome && known.by === undefined) return known.outcome;
  const channel = turns.channel(known.sessionId);
  return new Promise((resolve, reject) => {
    const look = async (): Promise<void> => {
      const latest = await turns.latest(id);
      // Redis has lost it, or it ended while there was no connection, longer ago than is known.
      if (!latest) return fail(unknown());
      if (!latest.outcome) return;
      end();
      resolve(latest.outcome);
    };
    const fail = (error: unknown): void => {
      end();
      reject(error);
    };
    const unlisten = connections.listen(channel, (message) => {
      // It brings the outcome of the job. Another job may have continued its run.
      const mine = message.startsWith(`end ${id} `);
      if (!mine) return void look().catch(fail);
      end();
      resolve(JSON.parse(message.slice(id.length + 5)) as Outcome);
    });
    // Messages get lost with a connection.
    const timer = setInterval(() => look().catch(fail), 2000);
    const aborted = (): void => fail(signal!.reason);
    const end = (): void => {
      unlisten();
      clearInterval(timer);
      signal?.removeEventListener('abort', aborted);
    };
    signal?.addEventListener('abort', aborted, { once: true });
    if (signal?.aborted) return aborted();
    connections.listening(channel).then(look).catch(fail);
  });
}
