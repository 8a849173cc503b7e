/**
 * What a run tells while it goes on. Starts and ends always balance, those of calls that wait over a resume; what is told
 * has been journaled.
 */
import type {
  AssistantMessage,
  ToolCall,
  ToolContent,
  ToolMessage,
  UserMessage,
} from '../messages/messages.js';
import type { GuardVerdict } from './guard.js';
import type { RunResult } from './result.js';
import type { PendingRequest } from './store.js';

interface Common {
  readonly runId: string;
  readonly sessionId: string;
}

/** A piece of a message as the user may see it: guards and transforms have done their work. */
export type MessageDelta =
  | { readonly type: 'text'; readonly block: number; readonly text: string }
  | { readonly type: 'thinking'; readonly block: number; readonly text: string }
  | {
      readonly type: 'tool-call';
      readonly block: number;
      readonly id: string;
      readonly name: string;
      readonly arguments: string;
    };

export type AgentEvent = Common &
  (
    | { readonly type: 'agent_start'; readonly resumed: boolean }
    | { readonly type: 'turn_start'; readonly turn: number }
    | { readonly type: 'message_start'; readonly messageId: string; readonly role: 'user' | 'assistant' }
    | { readonly type: 'message_update'; readonly messageId: string; readonly delta: MessageDelta }
    /** Everything shown of this message is void; what follows replaces it. */
    | { readonly type: 'message_reset'; readonly messageId: string }
    | {
        readonly type: 'message_end';
        readonly messageId: string;
        /** Absent when the message was discarded. */
        readonly message?: UserMessage | AssistantMessage;
        readonly discarded?: boolean;
      }
    | { readonly type: 'tool_execution_start'; readonly messageId: string; readonly toolCall: ToolCall }
    | {
        readonly type: 'tool_execution_update';
        readonly toolCallId: string;
        readonly toolName: string;
        readonly update: readonly ToolContent[];
        readonly details?: unknown;
      }
    /**
     * The call waits for answers to these questions. Its end follows: in the same stream, or, where the run is suspended,
     * in that of the resume, which does not start the call again.
     */
    | {
        readonly type: 'tool_execution_waiting';
        readonly toolCall: ToolCall;
        readonly pending: readonly PendingRequest[];
      }
    | {
        readonly type: 'tool_execution_end';
        readonly toolCall: ToolCall;
        readonly message: ToolMessage;
        /**
         * What the tool, or a middleware around it, threw, with its stack: the model is told its message only. It is in no
         * journal, and absent where a guard would take something out of it.
         */
        readonly error?: unknown;
      }
    | {
        readonly type: 'turn_end';
        readonly turn: number;
        readonly message?: AssistantMessage;
        readonly toolResults: readonly ToolMessage[];
      }
    | { readonly type: 'state_change'; readonly cell: string; readonly value: unknown }
    | { readonly type: 'suspended'; readonly pending: readonly PendingRequest[] }
    /** A guard found something, or decided about it. What it judged is not in here. */
    | { readonly type: 'guard_verdict'; readonly verdict: GuardVerdict }
    | { readonly type: 'custom'; readonly name: string; readonly by?: string; readonly data?: unknown }
    | { readonly type: 'agent_end'; readonly result: RunResult }
  );

/**
 * Sees every event and can change nothing.
 *
 * Contract: called in order, one event at a time, never awaited by the run. It may throw or reject: that is
 * reported to `onObserverError`. Where it is slower than the run, events wait in a bounded queue and the
 * oldest are dropped, counted and reported.
 */
export type Observer =
  | ((event: AgentEvent) => void | Promise<void>)
  | { readonly name?: string; onEvent(event: AgentEvent): void | Promise<void> };
