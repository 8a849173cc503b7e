/**
 * The events of a run. Every start has its end; a call that waits for a human may get its end in the stream of the resume.
 * What an event says has been journaled.
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

/** A piece of a message, after guards and transforms. */
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
    /** Everything shown of this message so far is void; what follows replaces it. */
    | { readonly type: 'message_reset'; readonly messageId: string }
    | {
        readonly type: 'message_end';
        readonly messageId: string;
        /** Absent if the message was discarded. */
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
     * The call waits for answers to these questions. Its end follows in the same stream, or, if the run is suspended, in the
     * stream of the resume, which has no second start.
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
         * What the tool or a middleware around it threw, with its stack; the model only reads its message. It isn't
         * journaled, and is absent if a guard would remove something from it.
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
    /** A guard found something or decided about it. The event doesn't contain what it judged. */
    | { readonly type: 'guard_verdict'; readonly verdict: GuardVerdict }
    | { readonly type: 'custom'; readonly name: string; readonly by?: string; readonly data?: unknown }
    | { readonly type: 'agent_end'; readonly result: RunResult }
  );

/**
 * Sees every event and can't change anything.
 *
 * Contract: called in order, one event at a time, never awaited by the run. If it throws or rejects, that is reported to
 * `onObserverError`. If it is slower than the run, events wait in a bounded queue; the oldest are dropped, counted and
 * reported.
 */
export type Observer =
  | ((event: AgentEvent) => void | Promise<void>)
  | {
      readonly name?: string;
      /**
       * Gets the last result of a turn just before it is written, not after. A run that nobody else watches then
       * doesn't have to wait for the store. @default false
       */
      readonly early?: boolean;
      onEvent(event: AgentEvent): void | Promise<void>;
    };
