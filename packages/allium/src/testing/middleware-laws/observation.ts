/** Everything that can be seen of a run, by facet, so that two runs can be compared. */

import type { AgentEvent, Message, ModelRequest, RunError, RunResult } from '../../index.js';

/** What a middleware may declare to change even if it has nothing to do. */
export const FACETS = [
  'events',
  'custom-events',
  'state',
  'messages',
  'request-messages',
  'system-prompt',
  'tools',
  'settings',
  'tool-runs',
  'result',
] as const;

export type Facet = (typeof FACETS)[number];

/** What reached the model and the tools. */
export interface Seen {
  readonly requests: { readonly turn: number; readonly request: ModelRequest }[];
  readonly toolRuns: {
    readonly turn: number;
    readonly id: string;
    readonly name: string;
    readonly args: unknown;
  }[];
}

/** Plain JSON. Ids that differ from run to run are written `RUN` and `SESSION`. */
export interface Observation {
  readonly facets: Readonly<Record<Facet, unknown>>;
  readonly result: RunResult;
  readonly error: RunError | undefined;
  readonly events: readonly AgentEvent[];
  readonly requests: readonly ModelRequest[];
  /** The messages without ids, usage and metadata, which may differ between attempts. */
  readonly conversation: unknown;
  /** The requests to the model, in the same way. */
  readonly asked: readonly unknown[];
}

export function observation(
  { requests, toolRuns }: Seen,
  events: readonly AgentEvent[],
  { result, error }: { readonly result: RunResult; readonly error?: RunError | undefined },
): Observation {
  const plain = (value: unknown): unknown =>
    JSON.parse(JSON.stringify(value).replaceAll(result.runId, 'RUN').replaceAll(result.sessionId, 'SESSION'));
  const { status, stop, text, output, usage, turns, pending, queued } = result;
  // Each is made when a law asks for it, which compares two or three. What they are made of does not change any more:
  // the kernel has frozen it, or the bench has copied it.
  const facets = lazily<Record<Facet, unknown>>(plain, {
    events: () => outline(events.filter(({ type }) => type !== 'custom' && type !== 'state_change')),
    'custom-events': () => events.filter(({ type }) => type === 'custom'),
    state: () => events.filter(({ type }) => type === 'state_change'),
    messages: () => result.messages,
    'request-messages': () => requests.map(({ request }) => request.messages),
    'system-prompt': () => requests.map(({ request }) => request.systemPrompt),
    tools: () => requests.map(({ request }) => request.tools),
    settings: () => requests.map(({ request }) => request.settings),
    'tool-runs': () =>
      [...toolRuns]
        .sort((a, b) => a.turn - b.turn || compare(a.id, b.id))
        .map(({ turn, name, args }) => ({ turn, name, args })),
    result: () => ({ status, stop, text, output, usage, turns, pending, queued, error: error?.message }),
  });
  const comparable = lazily<{ conversation: unknown; asked: unknown[] }>(plain, {
    conversation: () => result.messages.map(essence),
    asked: () => requests.map(({ request }) => askedFor(request)),
  });
  return {
    facets,
    result,
    error,
    events,
    requests: requests.map(({ request }) => request),
    get conversation() {
      return comparable.conversation;
    },
    get asked() {
      return comparable.asked;
    },
  };
}

/** An object whose values are made when they are first read. */
function lazily<T extends object>(
  finish: (value: unknown) => unknown,
  makers: { readonly [K in keyof T]: () => unknown },
): T {
  const made = new Map<string | symbol, unknown>();
  return new Proxy(makers as unknown as T, {
    get(_, key) {
      if (!made.has(key)) made.set(key, finish(makers[key as keyof T]()));
      return made.get(key);
    },
  });
}

/**
 * The events without their messages, which are compared apart. Deltas that follow each other are joined per block,
 * because a guard holds text back and releases it in other pieces. The events of a batch of calls are sorted by call,
 * because the calls run at once and their order means nothing.
 */
function outline(events: readonly AgentEvent[]): unknown {
  const lines: unknown[] = [];
  let batch: ToolEvent[] = [];
  let blocks: Map<number, Record<string, unknown>> | undefined;
  for (const event of events) {
    if (isToolEvent(event)) {
      batch.push(event);
      continue;
    }
    lines.push(...batch.sort((a, b) => compare(callOf(a), callOf(b))).map(lineOf));
    batch = [];
    if (event.type !== 'message_update') {
      if (blocks)
        lines.push([
          'message_update',
          [...blocks.values()].sort((a, b) => Number(a.block) - Number(b.block)),
        ]);
      blocks = undefined;
      lines.push(lineOf(event));
      continue;
    }
    blocks ??= new Map();
    const { delta } = event;
    const joined = blocks.get(delta.block);
    const key = delta.type === 'tool-call' ? 'arguments' : 'text';
    const piece = delta.type === 'tool-call' ? delta.arguments : delta.text;
    blocks.set(delta.block, joined ? { ...joined, [key]: `${joined[key]}${piece}` } : { ...delta });
  }
  return lines;
}

type ToolEvent = Extract<AgentEvent, { type: `tool_execution_${string}` }>;

function isToolEvent(event: AgentEvent): event is ToolEvent {
  return event.type.startsWith('tool_execution_');
}

function callOf(event: ToolEvent): string {
  return event.type === 'tool_execution_update' ? event.toolCallId : event.toolCall.id;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function lineOf(event: AgentEvent): unknown {
  switch (event.type) {
    case 'message_start':
    case 'message_reset':
    case 'message_end':
      return [event.type, event.messageId];
    case 'tool_execution_start':
    case 'tool_execution_waiting':
    case 'tool_execution_end':
      return [event.type, event.toolCall.id];
    case 'tool_execution_update':
      return [event.type, event.toolCallId, event.update];
    default:
      return [event.type];
  }
}

function askedFor({ systemPrompt, messages, tools, settings }: ModelRequest): unknown {
  return { systemPrompt, messages: messages.map(essence), tools, settings };
}

function essence(message: Message): unknown {
  const { role, content } = message;
  const parts = content.map(({ metadata: _, ...part }) => part);
  return role === 'tool' ? { role, content: parts, isError: message.isError } : { role, content: parts };
}
