/** What the live message needs from its run. */

import type { RunPort } from '../context/run-port.js';
import type { Judgements } from '../guards/verdict-cache.js';
import type { AgentEvent } from '../protocol/events.js';
import type { RunEvents } from './run-events.js';

export interface LiveRun extends RunPort {
  readonly judgements: Judgements;
  readonly events: RunEvents;
  emit(event: AgentEvent): void;
}
