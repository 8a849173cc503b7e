/** Asks the server. */
import type {
  AllowanceView,
  AnswerOutcome,
  OnionView,
  PlayEvent,
  Question,
  ReceivedView,
  RunPage,
  RunRow,
  RunView,
  SpendPage,
  StudioInfo,
} from '../../src/wire.js';

export class Failed extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

function address(path: string, query: Query = {}): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query))
    if (value !== undefined && value !== '' && value !== false) params.set(key, String(value));
  const text = params.toString();
  return text === '' ? path : `${path}?${text}`;
}

async function ask<T>(path: string, query?: Query, init?: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(address(path, query), init);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Failed('Studio does not answer. Is `allium studio` still running?', 0);
  }
  if (response.ok) return (await response.json()) as T;
  const text = await response.text();
  throw new Failed(messageIn(text), response.status);
}

function messageIn(text: string): string {
  try {
    return (JSON.parse(text) as { error?: string }).error ?? text;
  } catch {
    return text;
  }
}

const json = (body: unknown): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

export interface Id {
  readonly session: string;
  readonly run: string;
}

export const api = {
  info: () => ask<StudioInfo>('/api/info'),
  runs: (query: Query, signal?: AbortSignal) =>
    ask<RunPage>('/api/runs', query, signal ? { signal } : undefined),
  run: ({ session, run }: Id) => ask<RunView>('/api/run', { session, run }),
  message: (session: string, id: string) => ask<Record<string, unknown>>('/api/message', { session, id }),
  received: ({ session, run }: Id, call: number) =>
    ask<ReceivedView>('/api/received', { session, run, call }),
  raw: ({ session, run }: Id, call: number) => ask<unknown>('/api/raw', { session, run, call }),
  approvals: (cursor?: string) =>
    ask<{ questions: readonly Question[]; next?: string; scanned: number }>('/api/approvals', { cursor }),
  answer: (body: { sessionId: string; requestId: string; decision: unknown }) =>
    ask<AnswerOutcome>('/api/answer', undefined, json(body)),
  allowances: (session: string) => ask<AllowanceView>('/api/allowances', { session }),
  revoke: (sessionId: string, id: string) =>
    ask<AllowanceView>('/api/revoke', undefined, json({ sessionId, id })),
  onion: (query: Query) => ask<OnionView>('/api/onion', query),
  money: (by: string, cursor?: string) => ask<SpendPage>('/api/money', { by, cursor }),
  test: ({ session, run }: Id, runner: string) =>
    ask<{ code: string; file: string }>('/api/test', { session, run, runner }),
  open: (text: string) =>
    ask<{ sessionId: string; runId: string }>('/api/open', undefined, { method: 'POST', body: text }),
  exportAddress: ({ session, run }: Id) => address('/api/export', { session, run }),
};

/** Plays a message; calls `hear` with everything that happens. */
export async function play(
  body: { agent: string; sessionId: string; input: string; off: readonly string[] },
  hear: (event: PlayEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  const response = await fetch('/api/play', { ...json(body), signal });
  if (!response.ok || !response.body) throw new Failed(messageIn(await response.text()), response.status);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (let step = await reader.read(); !step.done; step = await reader.read()) {
    const lines = (rest + step.value).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') hear(JSON.parse(line) as PlayEvent);
  }
}

/**
 * Calls `runs` with changed runs until it is closed, and `hello` whenever it is connected: what was loaded before may be
 * outdated.
 */
export function watch(
  hello: () => void,
  runs: (rows: readonly RunRow[]) => void,
  state: (up: boolean) => void,
): () => void {
  const source = new EventSource('/api/live');
  source.addEventListener('hello', () => {
    state(true);
    hello();
  });
  source.addEventListener('runs', (event) =>
    runs(JSON.parse((event as MessageEvent<string>).data) as RunRow[]),
  );
  source.addEventListener('error', () => state(false));
  return () => source.close();
}
