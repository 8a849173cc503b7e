/** What clients get: the events of a run without anything that is not meant for them. Types only, for both sides. */

/** A part of a message, as clients see it. */
export type ClientContent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly text: string }
  | {
      readonly type: 'image' | 'file';
      readonly data: string;
      readonly mimeType: string;
      readonly name?: string;
    }
  /** `arguments` is JSON text; absent if the arguments of this tool are not shown. */
  | { readonly type: 'tool-call'; readonly id: string; readonly name: string; readonly arguments?: string };

/** A message of the history, as clients see it. */
export interface ClientMessage {
  readonly id: string;
  readonly role: 'user' | 'assistant' | 'tool';
  /** For a tool message: empty if its results are not shown. */
  readonly content: readonly ClientContent[];
  /** The call a `tool` message answers. */
  readonly toolCallId?: string;
  readonly toolName?: string;
  readonly isError?: boolean;
}

/** A piece of the assistant's message. `arguments` of a call is a piece of JSON text. */
export type ClientDelta =
  | { readonly type: 'text'; readonly block: number; readonly text: string }
  | { readonly type: 'thinking'; readonly block: number; readonly text: string }
  | {
      readonly type: 'tool-call';
      readonly block: number;
      readonly id: string;
      readonly name: string;
      readonly arguments: string;
    };

/** Something a person is asked. Answer it by its `id`. */
export interface Question {
  readonly id: string;
  readonly toolCallId: string;
  readonly toolName: string;
  /** `ask`: may this call happen? `suspend`: the tool itself asks. */
  readonly kind: 'ask' | 'suspend';
  readonly title?: string;
  readonly details?: unknown;
  /** Which decisions it takes. Absent: all. */
  readonly decisions?: readonly ('approve' | 'edit' | 'reject' | 'respond')[];
  /** False: an answer with `remember` is refused. */
  readonly remember?: boolean;
  /** What the tool will be called with, as JSON text: a person who approves it has to see it. */
  readonly arguments: string;
  /** What the model wrote, as JSON text, if that differs. `edit` takes arguments of this form. */
  readonly rawArguments?: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** When it lapses, in milliseconds since the epoch. */
  readonly expiresAt?: number;
  /** The sub-agent that asks, if one does. */
  readonly from?: string;
}

/** What a person approved for the rest of a session: it is not asked again until somebody revokes it. */
export interface ClientAllowance {
  readonly id: string;
  readonly toolName: string;
  /** `tool`: any call of the tool. `arguments`: only calls with the same arguments. */
  readonly scope: 'tool' | 'arguments';
  /** For scope `arguments`: the arguments, as JSON text. */
  readonly arguments?: string;
  /** The sub-agent that asked, if one did. */
  readonly from?: string;
  /** When it was approved, in milliseconds since the epoch. */
  readonly at: number;
}

/** How a run ended. `message` is absent if it would reveal internals, as for errors. */
export interface ClientEnd {
  readonly runId: string;
  readonly status: 'done' | 'stopped' | 'suspended' | 'error' | 'aborted';
  readonly stop: { readonly reason: string; readonly message?: string };
}

export interface ClientUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly totalTokens: number;
}

export type ClientEvent =
  | { readonly type: 'agent_start'; readonly runId: string; readonly resumed?: true }
  | { readonly type: 'message_start'; readonly messageId: string; readonly role: 'user' | 'assistant' }
  | { readonly type: 'message_update'; readonly messageId: string; readonly delta: ClientDelta }
  /** Everything shown of this message is void; what follows replaces it. */
  | { readonly type: 'message_reset'; readonly messageId: string }
  | {
      readonly type: 'message_end';
      readonly messageId: string;
      /** Absent if the message was discarded. */
      readonly message?: ClientMessage;
      readonly discarded?: true;
    }
  | {
      readonly type: 'tool_execution_start';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly arguments?: string;
    }
  | {
      readonly type: 'tool_execution_update';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly content: readonly ClientContent[];
    }
  | {
      readonly type: 'tool_execution_waiting';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly question: Question;
    }
  /** Somebody answered a question: close the prompt. */
  | { readonly type: 'answered'; readonly questionId: string; readonly decision: string }
  | {
      readonly type: 'tool_execution_end';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly isError: boolean;
      /** Absent if the results of this tool are not shown. */
      readonly content?: readonly ClientContent[];
    }
  /** The history ends with this message again; null: it is empty. */
  | { readonly type: 'rewound'; readonly to: string | null }
  /** A `custom` event that may be shown. */
  | { readonly type: 'notice'; readonly name: string; readonly data?: unknown }
  /**
   * Nothing was written for long (`silenceMs` of the server): the process that ran it has probably died. The stream ends,
   * and the run can be resumed. `since`: when something was last written, in milliseconds since the epoch.
   */
  | { readonly type: 'stalled'; readonly runId: string; readonly since: number }
  | { readonly type: 'suspended'; readonly questions: readonly Question[] }
  | ({ readonly type: 'agent_end' } & ClientEnd);

/** An event and its id. A client that reconnects with the id gets what came after it. */
export interface SentEvent {
  readonly id: string;
  readonly event: ClientEvent;
}
