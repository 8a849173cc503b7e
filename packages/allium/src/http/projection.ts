/**
 * Turns journal entries and live events into what clients may see. It lists what passes; everything else stays here.
 */
import {
  type AgentEvent,
  type Allowance,
  type AssistantMessage,
  type Entry,
  isSyntheticMessage,
  type Message,
  type PendingRequest,
  type ToolContent,
  type ToolMessage,
  type UserContent,
} from '../index.js';
import type {
  ClientAllowance,
  ClientContent,
  ClientDelta,
  ClientEvent,
  ClientMessage,
  Question,
} from './events.js';

/** What clients see in addition to texts, the names and states of tools, questions and the end. */
export interface Show {
  /** The model's thinking. @default false */
  readonly thinking?: boolean;
  /** Arguments, progress and results of all tools, or of these. @default false */
  readonly tools?: boolean | readonly string[];
  /** Names of `custom` events that clients get as `notice`, with their data. @default [] */
  readonly notices?: readonly string[];
  /** User messages that middleware wrote: nudges, reminders. @default false */
  readonly synthetic?: boolean;
  /** Token counts, in the JSON answer of a run. @default false */
  readonly usage?: boolean;
}

export class Projection {
  private readonly thinking: boolean;
  private readonly synthetic: boolean;
  private readonly notices: ReadonlySet<string>;
  private readonly showsTool: (name: string) => boolean;

  constructor({ thinking = false, tools = false, notices = [], synthetic = false }: Show = {}) {
    this.thinking = thinking;
    this.synthetic = synthetic;
    this.notices = new Set(notices);
    const named = typeof tools === 'boolean' ? undefined : new Set(tools);
    this.showsTool = (name) => named?.has(name) ?? tools === true;
  }

  /** The message as clients see it; undefined if they see nothing of it. */
  message(message: Message): ClientMessage | undefined {
    const { id, role } = message;
    if (role === 'tool') {
      const { toolCallId, toolName, isError } = message;
      return { id, role, toolCallId, toolName, isError, content: this.result(message) ?? [] };
    }
    if (role === 'user') {
      if (isSyntheticMessage(message) && !this.synthetic) return undefined;
      return { id, role, content: message.content.map(plain) };
    }
    return { id, role, content: this.said(message) };
  }

  /** The events of an entry. Always the same, because ids of events depend on it. */
  entry(entry: Entry): readonly ClientEvent[] {
    switch (entry.type) {
      case 'run_start':
        return [{ type: 'agent_start', runId: entry.runId }];
      case 'message':
        return this.messageEvents(entry.message);
      case 'tool_finished':
        return [this.toolEnd(entry.message)];
      case 'request': {
        const question = questionOf(entry.request);
        const { toolCallId, toolName } = question;
        return [{ type: 'tool_execution_waiting', toolCallId, toolName, question }];
      }
      case 'answer':
        return [{ type: 'answered', questionId: entry.requestId, decision: entry.decision.type }];
      case 'rewind':
        return [{ type: 'rewound', to: entry.to }];
      case 'run_end': {
        const { runId, status, stop } = entry;
        return [{ type: 'agent_end', runId, status, stop: told(status, stop) }];
      }
      default:
        return [];
    }
  }

  /** What clients see of an event that has no journal entry. */
  live(event: AgentEvent): ClientEvent | undefined {
    switch (event.type) {
      case 'agent_start':
        return event.resumed ? { type: 'agent_start', runId: event.runId, resumed: true } : undefined;
      case 'message_start':
        if (event.role === 'user') return undefined;
        return { type: 'message_start', messageId: event.messageId, role: event.role };
      case 'message_update': {
        const { messageId, delta } = event;
        if (delta.type === 'thinking' && !this.thinking) return undefined;
        if (delta.type === 'tool-call' && !this.showsTool(delta.name))
          return { type: 'message_update', messageId, delta: { ...delta, arguments: '' } };
        return { type: 'message_update', messageId, delta };
      }
      case 'message_reset':
        return { type: 'message_reset', messageId: event.messageId };
      case 'message_end':
        if (!event.discarded) return undefined;
        return { type: 'message_end', messageId: event.messageId, discarded: true };
      case 'tool_execution_update': {
        const { toolCallId, toolName, update } = event;
        if (!this.showsTool(toolName) || update.length === 0) return undefined;
        return { type: 'tool_execution_update', toolCallId, toolName, content: update.map(plain) };
      }
      case 'custom':
        if (!this.notices.has(event.name)) return undefined;
        return { type: 'notice', name: event.name, ...(event.data !== undefined && { data: event.data }) };
      case 'agent_end': {
        const { runId, status, stop } = event.result;
        return { type: 'agent_end', runId, status, stop: told(status, stop) };
      }
      default:
        return undefined;
    }
  }

  /** The pieces of a message that is sent in one go. */
  deltas(message: AssistantMessage): readonly ClientDelta[] {
    return message.content.flatMap((part, block): ClientDelta[] => {
      if (part.type === 'text') return part.text === '' ? [] : [{ type: 'text', block, text: part.text }];
      if (part.type === 'thinking')
        return this.thinking && part.text !== '' ? [{ type: 'thinking', block, text: part.text }] : [];
      if (part.type !== 'tool-call') return [];
      const { id, name } = part;
      return [{ type: 'tool-call', block, id, name, arguments: this.showsTool(name) ? part.arguments : '' }];
    });
  }

  private messageEvents(message: Message): readonly ClientEvent[] {
    if (message.role === 'tool') return [this.toolEnd(message)];
    const shown = this.message(message);
    if (shown === undefined) return [];
    const { id: messageId, role } = message;
    const start: ClientEvent = { type: 'message_start', messageId, role };
    const end: ClientEvent = { type: 'message_end', messageId, message: shown };
    if (role === 'user') return [start, end];
    const updates = this.deltas(message).map(
      (delta): ClientEvent => ({ type: 'message_update', messageId, delta }),
    );
    const calls = message.content.flatMap((part): ClientEvent[] => {
      if (part.type !== 'tool-call') return [];
      const { id: toolCallId, name: toolName } = part;
      const args = this.showsTool(toolName) && { arguments: part.arguments };
      return [{ type: 'tool_execution_start', toolCallId, toolName, ...args }];
    });
    return [start, ...updates, end, ...calls];
  }

  private toolEnd(message: ToolMessage): ClientEvent {
    const { toolCallId, toolName, isError } = message;
    const content = this.result(message);
    return { type: 'tool_execution_end', toolCallId, toolName, isError, ...(content && { content }) };
  }

  private result({ toolName, content }: ToolMessage): readonly ClientContent[] | undefined {
    return this.showsTool(toolName) ? content.map(plain) : undefined;
  }

  private said({ content }: AssistantMessage): readonly ClientContent[] {
    return content.flatMap((part): ClientContent[] => {
      switch (part.type) {
        case 'text':
          return [{ type: 'text', text: part.text }];
        case 'thinking':
          return this.thinking ? [{ type: 'thinking', text: part.text }] : [];
        case 'tool-call': {
          const { id, name } = part;
          return [
            { type: 'tool-call', id, name, ...(this.showsTool(name) && { arguments: part.arguments }) },
          ];
        }
        case 'file':
          return [plain(part)];
        default:
          return [];
      }
    });
  }
}

export function questionOf(request: PendingRequest): Question {
  const { id, callId, toolName, kind, title, details, decisions, remember, createdAt, timeoutMs, from } =
    request;
  const { arguments: raw, effectiveArguments = raw } = request;
  return {
    id,
    toolCallId: callId,
    toolName,
    kind,
    ...(title !== undefined && { title }),
    ...(details !== undefined && { details }),
    ...(decisions && { decisions }),
    ...(remember !== undefined && { remember }),
    arguments: effectiveArguments,
    ...(effectiveArguments !== raw && { rawArguments: raw }),
    createdAt,
    ...(timeoutMs !== undefined && { expiresAt: createdAt + timeoutMs }),
    ...(from && { from: from.agent }),
  };
}

/** Without the middleware that asked: its name would say how the agent is built. */
export function allowanceOf({ id, toolName, scope, arguments: args, agent, at }: Allowance): ClientAllowance {
  return {
    id,
    toolName,
    scope,
    ...(args !== undefined && { arguments: args }),
    ...(agent !== undefined && { from: agent }),
    at,
  };
}

/** Error messages come from providers and stores, so they stay on the server. */
export function told(
  status: string,
  { reason, message }: { readonly reason: string; readonly message?: string },
): { readonly reason: string; readonly message?: string } {
  return status === 'error' || message === undefined ? { reason } : { reason, message };
}

/** Without metadata. */
function plain(part: UserContent | ToolContent): ClientContent {
  if (part.type === 'text') return { type: 'text', text: part.text };
  const { type, data, mimeType } = part;
  const name = part.type === 'file' ? part.name : undefined;
  return { type, data, mimeType, ...(name !== undefined && { name }) };
}
