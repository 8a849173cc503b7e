/** Traces: who did what to a run, what the model received, and the story of a message. */

import type { Tracer } from '../kit/index.js';
import { loadTrace } from './read-trace.js';
import { Recorder } from './recorder.js';
import { type TracedPlan, tracedPlan } from './traced-plan.js';

export { readTrace } from './read-trace.js';

/** What the kernel is given to trace runs with. */
export const tracer: Tracer = {
  plan: tracedPlan,
  record: (run, keeps, stored) => new Recorder(run, (run.plan as TracedPlan).slots, keeps, stored),
  load: loadTrace,
};
