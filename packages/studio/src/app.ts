/** The routes: the page and its files, and the data it asks for. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Agent, type Decision, type Model, modelName, type Store } from 'allium';
import { memoryStore } from 'allium/stores/memory';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { streamSSE, stream as streamText } from 'hono/streaming';
import { allowancesOf, revokeAllowance } from './allowances.js';
import { AnswerRefused, answerQuestion, listQuestions, questionsOf } from './approvals.js';
import { NothingToTest, testOf } from './copy-test.js';
import { exportRun, NotATrace, openTrace } from './exporting.js';
import { Live } from './live.js';
import { listSpending } from './money.js';
import { viewOnion } from './onion.js';
import { CannotPlay, playOnce } from './playground.js';
import { rawRequest, receivedIn } from './received.js';
import { filterOf } from './run-filter.js';
import { listRuns } from './run-list.js';
import { RunUnknown, viewRun, wholeMessage } from './run-view.js';
import { type Gate, guardRequests } from './security.js';
import { Sources } from './sources.js';
import { Summaries } from './summaries.js';
import type { CallRow, RunRow, RunView, SpendBy, StudioInfo } from './wire.js';

export interface AppOptions extends Gate {
  /** Whose sessions are shown. */
  readonly store: Store;
  /** What the page calls it. */
  readonly storeName?: string;
  /** Your agents: for the onion, the playground and the forms in approvals. */
  readonly agents?: readonly Agent[];
  /** Lets people answer questions and use the playground; otherwise the page is read-only. @default false */
  readonly allowAnswers?: boolean;
  /** What the page says if there is no agent. */
  readonly problem?: string;
  readonly demo?: boolean;
  /** Called when an answer was given and no process waits for it, so that you can resume the run. */
  readonly onAnswered?: (sessionId: string, tenant: string | undefined) => Promise<void>;
}

export interface App {
  readonly fetch: (request: Request) => Response | Promise<Response>;
  close(): void;
}

const version = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  .version as string;

const BY: readonly SpendBy[] = ['model', 'tenant', 'session'];

/** A body may hold an exported trace. */
const BODY_BYTES = 64 * 1024 * 1024;

export function createApp(options: AppOptions): App {
  const { store, storeName = 'store', agents = [], allowAnswers = false, demo = false } = options;
  const opened = memoryStore();
  const played = memoryStore();
  const sources = new Sources(store, [opened, played]);
  const summaries = new Summaries(sources);
  const live = new Live(sources, summaries);
  const anyone = new Agent({ model: NOBODY, store });
  const app = new Hono();

  app.use(guardRequests(options));
  app.use('/api/*', async (c, next) => {
    c.header('cache-control', 'no-store');
    await next();
  });
  app.use(
    '/api/*',
    bodyLimit({ maxSize: BODY_BYTES, onError: (c) => tell(c, 413, 'That is more than 64 MB.') }),
  );
  app.on('POST', ['/api/answer', '/api/revoke', '/api/play'], async (c, next) => {
    if (!allowAnswers)
      return tell(
        c,
        403,
        'Studio is read-only. Start it with --allow-answers to answer questions and use the playground.',
      );
    await next();
  });

  app.get('/api/info', (c) => {
    const info: StudioInfo = {
      version,
      store: storeName,
      demo,
      allowAnswers,
      agents: agents.map((agent) => ({
        name: agent.name,
        model: modelName(agent.model),
        middleware: agent.plan.middleware.map(({ name }) => name),
        tools: agent.plan.tools.map(({ name }) => name),
      })),
      ...(options.problem !== undefined && { problem: options.problem }),
    };
    return c.json(info);
  });

  app.get('/api/runs', async (c) =>
    c.json(await listRuns(sources, summaries, filterOf(c.req.query()), c.req.query('cursor'))),
  );

  app.get('/api/live', (c) =>
    streamSSE(c, async (stream) => {
      const queue: (readonly RunRow[])[] = [];
      let wake = () => {};
      const stop = live.watch((rows) => {
        queue.push(rows);
        wake();
      });
      stream.onAbort(() => {
        stop();
        wake();
      });
      // A page that loads after this event gets data at least as new as the event.
      await live.ready;
      await stream.writeSSE({ event: 'hello', data: '{}' });
      while (!stream.aborted && !stream.closed) {
        const rows = queue.shift();
        if (rows) await stream.writeSSE({ event: 'runs', data: JSON.stringify(rows) });
        else await within(20_000, (resolve) => (wake = resolve));
        if (!rows && queue.length === 0 && !stream.aborted)
          await stream.writeSSE({ event: 'still', data: '{}' });
      }
      stop();
    }),
  );

  app.get('/api/run', async (c) => {
    const { session = '', run = '' } = c.req.query();
    const { requests, ...view } = await viewRun(sources, session, run);
    const questions = requests.length > 0 ? await questionsOf(sources, agents, view.row) : [];
    return c.json({ ...view, questions } satisfies RunView);
  });

  app.get('/api/message', async (c) => {
    const { session = '', id = '' } = c.req.query();
    const message = await wholeMessage(sources, session, id);
    return message === undefined ? tell(c, 404, 'There is no such message.') : c.json(message as object);
  });

  /** The model call that a request names. */
  const callIn = async (c: Context): Promise<{ session: string; run: string; call: CallRow } | undefined> => {
    const { session = '', run = '', call } = c.req.query();
    const { calls } = await viewRun(sources, session, run);
    const found = calls.find(({ n }) => String(n) === call);
    return found && { session, run, call: found };
  };

  app.get('/api/received', async (c) => {
    const found = await callIn(c);
    if (!found) return tell(c, 404, 'There is no such call.');
    const { session, run, call } = found;
    return c.json(receivedIn(session, await sources.read(session), run, call));
  });

  app.get('/api/raw', async (c) => {
    const found = await callIn(c);
    if (!found) return tell(c, 404, 'There is no such call.');
    const { session, run, call } = found;
    return c.json(rawRequest(session, await sources.read(session), run, call) as object);
  });

  app.get('/api/onion', async (c) => {
    const { session, run, agent, last } = c.req.query();
    const query = {
      last: Math.min(500, Math.max(1, Number(last) || 50)),
      sessionId: session,
      runId: run,
      agent,
    };
    return c.json(await viewOnion(sources, summaries, agents, query));
  });

  app.get('/api/money', async (c) => {
    const by = BY.find((one) => one === c.req.query('by')) ?? 'model';
    return c.json(await listSpending(sources, summaries, by, c.req.query('cursor')));
  });

  app.get('/api/export', async (c) => {
    const { session = '', run = '' } = c.req.query();
    await viewRun(sources, session, run);
    c.header('content-disposition', `attachment; filename="${run.replace(/[^\w.-]/g, '_')}.json"`);
    return c.json(await exportRun(sources, session, run));
  });

  app.post('/api/open', async (c) => c.json(await openTrace(opened, await c.req.text())));

  app.get('/api/test', async (c) => {
    const { session = '', run = '', runner } = c.req.query();
    return c.json(await testOf(await sources.read(session), run, runner === 'vitest' ? 'vitest' : 'node'));
  });

  app.post('/api/play', async (c) => {
    const {
      agent: name,
      sessionId,
      input,
      off,
    } = await c.req.json<{
      agent: string;
      sessionId: string;
      input: string;
      off: readonly string[];
    }>();
    const agent = agents.find((one) => one.name === name);
    if (!agent) return tell(c, 404, `There is no agent "${name}".`);
    c.header('content-type', 'application/x-ndjson');
    return streamText(c, async (out) => {
      const control = new AbortController();
      out.onAbort(() => control.abort());
      await playOnce({
        ...{ agent, store: played, sessionId, input, off, signal: control.signal },
        hear: async (event) => void (await out.write(`${JSON.stringify(event)}\n`)),
      });
    });
  });

  app.get('/api/approvals', async (c) =>
    c.json(await listQuestions(sources, summaries, agents, c.req.query('cursor'))),
  );

  app.post('/api/answer', async (c) => {
    const { sessionId, requestId, decision } = await c.req.json<{
      sessionId: string;
      requestId: string;
      decision: Decision;
    }>();
    const { tenant, ...outcome } = await answerQuestion(sources, agents, anyone, {
      sessionId,
      requestId,
      decision,
    });
    if (outcome.taken || !options.onAnswered) return c.json(outcome);
    // The journal shows how it ends, and the page shows the journal.
    options.onAnswered(sessionId, tenant).catch(() => {});
    return c.json({ taken: true });
  });

  app.get('/api/allowances', async (c) =>
    c.json(await allowancesOf(sources, anyone, c.req.query('session') ?? '')),
  );

  app.post('/api/revoke', async (c) => {
    const { sessionId, id } = await c.req.json<{ sessionId: string; id: string }>();
    await revokeAllowance(sources, anyone, sessionId, id);
    return c.json(await allowancesOf(sources, anyone, sessionId));
  });

  app.get('/', (c) => file(c, 'index.html'));
  app.get('/assets/:name', (c) => file(c, `assets/${c.req.param('name')}`));
  app.notFound((c) => tell(c, 404, 'There is nothing here.'));
  app.onError((error, c) => {
    if (error instanceof RunUnknown) return tell(c, 404, error.message);
    if (error instanceof AnswerRefused || error instanceof NothingToTest || error instanceof CannotPlay)
      return tell(c, 409, error.message);
    if (error instanceof NotATrace) return tell(c, 400, error.message);
    return tell(c, 500, error instanceof Error ? error.message : String(error));
  });
  return { fetch: app.fetch, close: () => live.close() };
}

/** Answers for sessions whose agent is not configured here. It never calls a model. */
const NOBODY: Model = {
  provider: 'none',
  id: 'none',
  // biome-ignore lint/correctness/useYield: it only refuses.
  *stream() {
    throw new Error('Studio calls no model for a session of another agent.');
  },
};

function tell(c: Context, status: 400 | 403 | 404 | 409 | 413 | 500, message: string): Response {
  return c.json({ error: message }, status);
}

/** Resolves when `start` says so, or after that time. */
function within(ms: number, start: (resolve: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    start(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

const folder = fileURLToPath(new URL('../web/dist/', import.meta.url));
const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};

/** Files of the build. Their names have no folders, so nothing else can be asked for. */
function file(c: Context, name: string): Response {
  const type = TYPES[name.split('.').at(-1) ?? ''];
  if (!type || !/^(?:assets\/)?[\w-]+\.\w+$/.test(name)) return tell(c, 404, 'There is nothing here.');
  try {
    const body = readFileSync(`${folder}${name}`);
    const cached = name.startsWith('assets/') ? 'private, max-age=31536000, immutable' : 'no-store';
    return c.body(body, 200, { 'content-type': type, 'cache-control': cached });
  } catch {
    return tell(c, 404, 'There is nothing here. Is the page built? Run: npm run build');
  }
}
