/** What was said to a job too late for it to hear: another job answers. */
import type { JobData } from './jobs.js';
import type { Backend } from './options.js';

/** Files that job, once for each time the first one was worked on: it may be sent back and be spoken to again. */
export async function answerUnheard({ turns, clock }: Backend, id: string, data: JobData): Promise<void> {
  const { input: _, of: __, key: ___, cancelled: ____, redriven = '', ...rest } = data;
  await turns.file(`${id}-s${redriven}`, {
    ...rest,
    kind: 'continue',
    unheard: true,
    enqueuedAt: clock.now(),
  });
}
