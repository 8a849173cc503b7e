/**
 * The UI message stream of the AI SDK, which `useChat` reads: events in, chunks out. From version 6 on there are approvals.
 * In 7, answers to them are told, calls beside a question count as approved, and a step can be taken back. The older ones
 * get `data-` parts instead: a `data-question`, and a `data-reset`, which `visibleParts` of `allium/http/client` acts on.
 */
import type { ClientContent, ClientDelta, ClientEnd, ClientEvent, Question } from './events.js';

export type SdkVersion = 5 | 6 | 7;

/** A chunk of the stream. The AI SDK checks its shape. */
export type UiChunk = { readonly type: string; readonly [field: string]: unknown };

export class UiChunks {
  private started = false;
  private stepOpen = false;
  /** The text or reasoning that is being written. */
  private writing:
    | { readonly type: 'text' | 'reasoning'; readonly id: string; readonly block: number }
    | undefined;
  /** The calls of this step. */
  private readonly calls = new Set<string>();
  /** The calls in the message. The client fails if it is sent any other. */
  private readonly known: Set<string>;
  private readonly questions = new Map<string, Question>();
  /** The last question about each call, of those asked in this stream. */
  private readonly asking = new Map<string, string>();
  private readonly denied = new Set<string>();
  /** Calls whose outcome was sent. */
  private readonly over = new Set<string>();
  /** Tells texts of the same block apart after a reset. */
  private attempt = 0;

  constructor(
    private readonly sdk: SdkVersion,
    /** The message that is continued, if there is one. */
    private readonly continued?: { readonly id: string; readonly calls: readonly string[] },
    /** The page may have some of it already. AI SDK 7 begins the message anew by itself. */
    private readonly isReplay = false,
  ) {
    this.known = new Set(continued?.calls);
  }

  of(event: ClientEvent): UiChunk[] {
    switch (event.type) {
      case 'message_start':
        return event.role === 'user' ? [] : [...this.start(event.messageId), ...this.startStep()];
      case 'message_update':
        return this.update(event.messageId, event.delta);
      case 'message_reset':
        return this.reset(event.messageId);
      case 'message_end':
        if (event.message?.role === 'user') return this.userSaid(event.messageId, event.message.content);
        return [...this.endText(), ...files(event.message?.content ?? [])];
      case 'tool_execution_start':
        return this.inputAvailable(event.toolCallId, event.toolName, event.arguments);
      case 'tool_execution_update': {
        const { toolCallId, content } = event;
        if (!this.known.has(toolCallId)) return [];
        const output = outputOf(content);
        return [...this.start(), { type: 'tool-output-available', toolCallId, output, preliminary: true }];
      }
      case 'tool_execution_waiting':
        return this.ask(event.question);
      case 'answered':
        return this.answered(event.questionId, event.decision);
      case 'tool_execution_end':
        // A new message on a session that waits gives up the calls of the answer before: that is another message.
        return this.known.has(event.toolCallId) ? [...this.start(), this.outcome(event)] : [];
      case 'notice':
        return [{ type: 'data-notice', data: { name: event.name, data: event.data }, transient: true }];
      case 'suspended':
        return this.sdk >= 7 ? this.othersWait() : [];
      case 'stalled':
        return this.end('stalled');
      case 'agent_end':
        return this.end(event.status, event.stop);
      default:
        return [];
    }
  }

  private start(messageId?: string): UiChunk[] {
    if (this.started) return [];
    this.started = true;
    const id = this.continued?.id ?? messageId;
    const start: UiChunk = { type: 'start', ...(id !== undefined && { messageId: id }) };
    if (!this.isReplay || this.sdk >= 7) return [start];
    // Without an id, so that each is a part of its own, after the parts that it hides.
    return [start, { type: 'data-reset', data: { messageId: id, all: true } }];
  }

  private startStep(): UiChunk[] {
    const end = this.endStep();
    this.stepOpen = true;
    this.calls.clear();
    return [...end, { type: 'start-step' }];
  }

  private endStep(): UiChunk[] {
    if (!this.stepOpen) return [];
    this.stepOpen = false;
    return [...this.endText(), { type: 'finish-step' }];
  }

  private endText(): UiChunk[] {
    const { writing } = this;
    this.writing = undefined;
    return writing ? [{ type: `${writing.type}-end`, id: writing.id }] : [];
  }

  private update(messageId: string, delta: ClientDelta): UiChunk[] {
    if (delta.type === 'tool-call') return this.callInput(delta);
    const type = delta.type === 'text' ? 'text' : 'reasoning';
    const chunks: UiChunk[] = [];
    if (this.writing?.block !== delta.block) {
      chunks.push(...this.endText());
      const id = `${messageId}:${delta.block}:${this.attempt}`;
      this.writing = { type, id, block: delta.block };
      chunks.push({ type: `${type}-start`, id });
    }
    chunks.push({ type: `${type}-delta`, id: this.writing!.id, delta: delta.text });
    return chunks;
  }

  private callInput({
    id: toolCallId,
    name: toolName,
    arguments: piece,
  }: ClientDelta & { type: 'tool-call' }): UiChunk[] {
    const chunks = this.endText();
    if (!this.calls.has(toolCallId)) {
      this.calls.add(toolCallId);
      this.known.add(toolCallId);
      chunks.push({ type: 'tool-input-start', toolCallId, toolName });
    }
    if (piece !== '') chunks.push({ type: 'tool-input-delta', toolCallId, inputTextDelta: piece });
    return chunks;
  }

  private reset(messageId: string): UiChunk[] {
    this.attempt++;
    if (this.sdk >= 7) {
      this.writing = undefined;
      this.calls.clear();
      return [{ type: 'reset-step' }];
    }
    // The parts stay in the message, marked. A new step hides them from the SDK.
    const marker: UiChunk = { type: 'data-reset', id: `${messageId}:${this.attempt}`, data: { messageId } };
    return [...this.endText(), marker, ...this.startStep()];
  }

  private inputAvailable(toolCallId: string, toolName: string, args: string | undefined): UiChunk[] {
    this.known.add(toolCallId);
    return [...this.endText(), { type: 'tool-input-available', toolCallId, toolName, input: parsed(args) }];
  }

  private ask(question: Question): UiChunk[] {
    const { id, toolCallId } = question;
    this.questions.set(id, question);
    this.asking.set(toolCallId, id);
    const data: UiChunk = { type: 'data-question', id, data: question };
    if (this.sdk === 5) return [...this.start(), data];
    return [...this.start(), { type: 'tool-approval-request', approvalId: id, toolCallId }, data];
  }

  /** The other calls of the step run once the questions are answered. Until then, the page counts them as approved. */
  private othersWait(): UiChunk[] {
    const asked = new Set([...this.questions.values()].map(({ toolCallId }) => toolCallId));
    const others = [...this.calls].filter((id) => !asked.has(id) && !this.over.has(id));
    return others.flatMap((toolCallId): UiChunk[] => {
      const { id: approvalId, approved, isAutomatic } = automatic(toolCallId);
      return [
        { type: 'tool-approval-request', approvalId, toolCallId, isAutomatic },
        { type: 'tool-approval-response', approvalId, approved },
      ];
    });
  }

  private answered(questionId: string, decision: string): UiChunk[] {
    const question = this.questions.get(questionId);
    if (decision === 'reject' && question) this.denied.add(question.toolCallId);
    if (!question) return [];
    const data: UiChunk = {
      type: 'data-question',
      id: questionId,
      data: { ...question, answered: decision },
    };
    // A client that answered knows it. One that reads along knows only the last question about a call, and fails if it is
    // told of another.
    if (this.sdk < 7 || this.asking.get(question.toolCallId) !== questionId) return [...this.start(), data];
    const approved = decision !== 'reject';
    return [...this.start(), { type: 'tool-approval-response', approvalId: questionId, approved }, data];
  }

  /** Questions that were asked before this stream began. */
  know(questions: readonly Question[]): void {
    for (const question of questions) this.questions.set(question.id, question);
  }

  private outcome(event: ClientEvent & { type: 'tool_execution_end' }): UiChunk {
    const { toolCallId, isError, content } = event;
    this.over.add(toolCallId);
    if (isError && this.denied.has(toolCallId) && this.sdk > 5)
      return { type: 'tool-output-denied', toolCallId };
    if (!isError) return { type: 'tool-output-available', toolCallId, output: outputOf(content) };
    const text = content && outputOf(content);
    return {
      type: 'tool-output-error',
      toolCallId,
      errorText: typeof text === 'string' && text !== '' ? text : 'The tool failed.',
    };
  }

  /** Somebody sent a message into the run. The client itself has the one it began with. */
  private userSaid(id: string, content: readonly ClientContent[]): UiChunk[] {
    if (!this.started) return [];
    const parts = uiParts(content);
    if (this.sdk >= 7) return [{ type: 'steering-message', id, parts }];
    return [{ type: 'data-user-message', id, data: { parts } }];
  }

  private end(status: string, stop?: ClientEnd['stop']): UiChunk[] {
    const chunks = [...this.start(), ...this.endStep()];
    if (status === 'error') chunks.push({ type: 'error', errorText: 'Something went wrong.' });
    else if (status === 'stalled') chunks.push({ type: 'error', errorText: 'The answer broke off.' });
    else if (status === 'aborted') chunks.push({ type: 'abort' });
    else if (status === 'stopped') chunks.push({ type: 'data-stop', data: stop });
    chunks.push({ type: 'finish' });
    return chunks;
  }
}

/** The files that the model made. Their chunks have no name. */
function files(content: readonly ClientContent[]): UiChunk[] {
  return uiParts(content.filter(({ type }) => type === 'file')).map(({ url, mediaType }) => ({
    type: 'file',
    url,
    mediaType,
  }));
}

/** For AI SDK 7: the approval of a call that nobody has to approve. */
export function automatic(toolCallId: string) {
  return { id: `auto ${toolCallId}`, approved: true, isAutomatic: true } as const;
}

/** Content as parts of a UI message. */
export function uiParts(content: readonly ClientContent[]): readonly Record<string, unknown>[] {
  return content.flatMap((part): Record<string, unknown>[] => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }];
    if (part.type !== 'image' && part.type !== 'file') return [];
    const { mimeType: mediaType, data } = part;
    const url = /^[a-z][a-z0-9+.-]*:/i.test(data) ? data : `data:${mediaType};base64,${data}`;
    return [{ type: 'file', mediaType, url, ...(part.name !== undefined && { filename: part.name }) }];
  });
}

/** What a tool part shows: the text, or the JSON in it. Null if results are not shown. */
export function outputOf(content: readonly ClientContent[] | undefined): unknown {
  if (content === undefined) return null;
  const text = content.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join('');
  return /^\s*[[{]/.test(text) ? (parsed(text, text) ?? text) : text;
}

/** Arguments that aren't JSON are shown as they are; hidden ones as an empty object. */
export function parsed(json: string | undefined, otherwise: unknown = json): unknown {
  if (json === undefined) return {};
  try {
    return JSON.parse(json);
  } catch {
    return otherwise;
  }
}
