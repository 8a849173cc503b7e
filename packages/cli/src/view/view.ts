/** Shows a run while it goes on, and says how it ended. */
import {
  type AgentEvent,
  type Decision,
  type PendingRequest,
  RunError,
  type RunResult,
  type RunStream,
} from 'allium';

export interface View {
  event(event: AgentEvent): void;
  /** Something is going to be asked: leave the screen alone. */
  pause(): void;
  /** The run asks something, and is answered in place. */
  request?(request: PendingRequest): void;
  answer?(request: PendingRequest, decision: Decision): void;
}

export interface Ended {
  /** Undefined when the run did not even begin. */
  readonly result: RunResult | undefined;
  /** Why it failed or was aborted. */
  readonly error: unknown;
}

/** Shows every event; never throws for what went wrong in the run. */
export async function follow(stream: RunStream, view: View): Promise<Ended> {
  try {
    for await (const event of stream) view.event(event);
    return { result: await stream.result, error: undefined };
  } catch (error) {
    return { result: error instanceof RunError ? error.result : undefined, error };
  } finally {
    view.pause();
  }
}
