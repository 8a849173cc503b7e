/** Folds events into what a screen shows. Apply each event once, in order. */
import type { ClientContent, ClientDelta, ClientEvent, ClientMessage, Question } from '../events.js';

export interface ToolView {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly state: 'running' | 'waiting' | 'done' | 'failed';
  readonly content?: readonly ClientContent[];
}

export interface View {
  readonly messages: readonly ClientMessage[];
  /** By call id, in the order they began. */
  readonly tools: readonly ToolView[];
  readonly questions: readonly Question[];
  readonly status: 'idle' | 'running' | 'stalled' | 'done' | 'stopped' | 'suspended' | 'error' | 'aborted';
}

/** What is shown before the first event. */
export const EMPTY_VIEW: View = { messages: [], tools: [], questions: [], status: 'idle' };

/**
 * What is shown after an event.
 *
 * @example
 * let view = EMPTY_VIEW;
 * for await (const { event } of client.join('ann')) show((view = applyEvent(view, event)));
 */
export function applyEvent(view: View, event: ClientEvent): View {
  switch (event.type) {
    case 'agent_start':
      return { ...view, status: 'running', questions: [], tools: event.resumed ? view.tools : settled(view) };
    case 'message_start':
      return withMessage(view, { id: event.messageId, role: event.role, content: [] });
    case 'message_update':
      return change(view, event.messageId, (message) => grown(message, event.delta));
    case 'message_reset':
      return change(view, event.messageId, (message) => ({ ...message, content: [] }));
    case 'message_end':
      if (event.message) return withMessage(view, event.message);
      return { ...view, messages: view.messages.filter(({ id }) => id !== event.messageId) };
    case 'tool_execution_start':
      return withTool(view, event.toolCallId, event.toolName, 'running');
    case 'tool_execution_update':
      return withTool(view, event.toolCallId, event.toolName, 'running', event.content);
    case 'tool_execution_waiting': {
      const questions = [...view.questions.filter(({ id }) => id !== event.question.id), event.question];
      return { ...withTool(view, event.toolCallId, event.toolName, 'waiting'), questions };
    }
    case 'answered':
      return { ...view, questions: view.questions.filter(({ id }) => id !== event.questionId) };
    case 'tool_execution_end': {
      const { toolCallId, toolName, isError, content } = event;
      return withTool(view, toolCallId, toolName, isError ? 'failed' : 'done', content);
    }
    case 'rewound':
      return { ...view, messages: upTo(view.messages, event.to) };
    case 'stalled':
      return { ...view, status: 'stalled' };
    case 'suspended':
      return { ...view, questions: event.questions };
    case 'agent_end':
      return { ...view, status: event.status };
    default:
      return view;
  }
}

/** The messages up to this one, which may be one that isn't shown, such as the result of a tool. */
function upTo(messages: readonly ClientMessage[], last: string | null): readonly ClientMessage[] {
  if (last === null) return [];
  // Ids are those of their run and a number.
  const [run, number] = placeOf(last);
  const end = messages.findLastIndex(({ id }) => {
    const [of, n] = placeOf(id);
    return of === run && n <= number;
  });
  if (end >= 0) return messages.slice(0, end + 1);
  const first = messages.findIndex(({ id }) => placeOf(id)[0] === run);
  return messages.slice(0, Math.max(first, 0));
}

function placeOf(id: string): readonly [run: string, n: number] {
  const dot = id.lastIndexOf('.');
  return [id.slice(0, dot), Number(id.slice(dot + 1))];
}

/** All text of a message. */
export function messageText({ content }: Pick<ClientMessage, 'content'>): string {
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

/** A new run gives up what the one before it left open. Who began it isn't told of that. */
function settled({ tools }: View): readonly ToolView[] {
  const isOver = ({ state }: ToolView): boolean => state === 'done' || state === 'failed';
  return tools.map((one) => (isOver(one) ? one : { ...one, state: 'failed' }));
}

function withMessage(view: View, message: ClientMessage): View {
  if (view.messages.some(({ id }) => id === message.id)) return change(view, message.id, () => message);
  return { ...view, messages: [...view.messages, message] };
}

function change(view: View, id: string, to: (message: ClientMessage) => ClientMessage): View {
  return { ...view, messages: view.messages.map((one) => (one.id === id ? to(one) : one)) };
}

function grown(message: ClientMessage, delta: ClientDelta): ClientMessage {
  const content = [...message.content];
  const last = content.at(-1);
  if (delta.type === 'tool-call') {
    if (last?.type === 'tool-call' && last.id === delta.id)
      content[content.length - 1] = { ...last, arguments: (last.arguments ?? '') + delta.arguments };
    else content.push({ type: 'tool-call', id: delta.id, name: delta.name, arguments: delta.arguments });
  } else if (last?.type === delta.type)
    content[content.length - 1] = { type: delta.type, text: last.text + delta.text };
  else content.push({ type: delta.type, text: delta.text });
  return { ...message, content };
}

function withTool(
  view: View,
  toolCallId: string,
  toolName: string,
  state: ToolView['state'],
  content?: readonly ClientContent[],
): View {
  const tool: ToolView = { toolCallId, toolName, state, ...(content && { content }) };
  const known = view.tools.some((one) => one.toolCallId === toolCallId);
  const tools = known
    ? view.tools.map((one) => (one.toolCallId === toolCallId ? { ...one, ...tool } : one))
    : [...view.tools, tool];
  return { ...view, tools };
}
