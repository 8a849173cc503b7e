/** What the sinks of a run got, and two that take more than a callback: OpenTelemetry and a client of `serve`. */
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import type { Agent, AgentEvent } from 'allium';
import { serve } from 'allium/http';
import { alliumClient } from 'allium/http/client';
import { MARK } from './every-sink-guards.js';

/** What the sinks got, by the name of the sink. */
export class Sinks {
  readonly got = new Map<string, unknown[]>();
  /** How often the run went the way its mode is called: answers of a cache or a recording, second attempts, resumes. */
  happened = 0;
  #marked: string[] | undefined;

  add(sink: string, value: unknown): void {
    this.#marked = undefined;
    const list = this.got.get(sink);
    if (list) list.push(value);
    else this.got.set(sink, [value]);
  }

  /** The sinks that have a part of the secret. */
  marked(): string[] {
    this.#marked ??= [...this.got].filter(([, values]) => isMarked(values)).map(([sink]) => sink);
    return this.#marked;
  }
}

/** Whether `textOfAll` would have the mark in it. What several values share is looked at once: histories share all their messages. */
function isMarked(value: unknown, seen = new Set<unknown>()): boolean {
  if (typeof value === 'string') return MARK.test(value);
  if (typeof value !== 'object' || value === null || seen.has(value)) return false;
  seen.add(value);
  const held = readable('toJSON' in value && typeof value.toJSON === 'function' ? value.toJSON() : value);
  if (typeof held !== 'object' || held === null) return isMarked(held, seen);
  if (Array.isArray(held)) return held.some((one) => isMarked(one, seen));
  return Object.entries(held).some(([key, one]) => MARK.test(key) || isMarked(one, seen));
}

/** All text, that of errors and maps too. */
export function textOfAll(value: unknown): string {
  const seen = new Set<unknown>();
  return JSON.stringify(value, (_, held) => {
    if (typeof held === 'bigint') return String(held);
    if (held instanceof Error) {
      if (seen.has(held)) return 'seen';
      seen.add(held);
    }
    return readable(held);
  });
}

/** Errors and maps have their text where JSON does not look. */
function readable(held: unknown): unknown {
  if (held instanceof Map) return [...held];
  if (!(held instanceof Error)) return held;
  // The caller gets the original as the cause, whatever it says; nobody else does.
  return { ...held, cause: undefined, name: held.name, message: held.message, stack: held.stack };
}

/** Deltas as a reader puts them together: a secret in two halves is one. */
export const joined = (events: readonly AgentEvent[]): string =>
  events.map((one) => (one.type === 'message_update' && 'text' in one.delta ? one.delta.text : '')).join('');

/** The same of the chunks of a chat. */
const joinedChunks = (stream: string): string =>
  [...stream.matchAll(/^data: (\{.*\})$/gm)].map(([, json]) => JSON.parse(json!).delta ?? '').join('');

/** OpenTelemetry with an exporter that keeps the spans. */
export function tracing(): { provider: NodeTracerProvider; spans: () => unknown } {
  const exporter = new InMemorySpanExporter();
  const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const spans = () =>
    exporter
      .getFinishedSpans()
      .map(({ name, attributes, events, status }) => ({ name, attributes, events, status }));
  return { provider, spans };
}

/** Runs it for a client of `serve`, to whom everything is shown that can be. */
export async function serving(
  agent: Agent,
  sinks: Sinks,
  request: { sessionId: string; input: string; way: 'live' | 'json' | 'chat' },
) {
  const { sessionId, input, way } = request;
  const handler = serve({
    agents: agent,
    authorize: 'none',
    show: { thinking: true, tools: true, notices: ['guard_warning'], synthetic: true, usage: true },
    onError: (error) => sinks.add('errors', error),
  });
  const send: typeof fetch = (url, init) => handler(new Request(url, init));
  const client = alliumClient({ baseUrl: 'http://localhost', fetch: send });
  if (way === 'live') {
    const events: unknown[] = [];
    for await (const { event } of client.run(input, { sessionId, create: true })) events.push(event);
    sinks.add('HTTP events', [events, joined(events as AgentEvent[])]);
    const later: unknown[] = [];
    for await (const { event } of client.join(sessionId)) later.push(event);
    sinks.add('HTTP events later', later);
  } else {
    const post = async (path: string, body: unknown): Promise<string> => {
      const headers = { 'content-type': 'application/json' };
      return (
        await send(`http://localhost${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
      ).text();
    };
    if (way === 'json') sinks.add('HTTP answer', await post('/sessions', { input, sessionId }));
    else {
      // As `useChat` of the AI SDK does it.
      const message = { id: 'm', role: 'user', parts: [{ type: 'text', text: input }] };
      const stream = await post('/chat', { id: sessionId, messages: [message], trigger: 'submit-message' });
      sinks.add('chat stream', [stream, joinedChunks(stream)]);
    }
  }
  const chat = await send(`http://localhost/chat/${sessionId}`);
  sinks.add('chat history', await chat.text());
  sinks.add('HTTP history', await client.messages(sessionId));
  sinks.happened++;
  return 'served';
}
