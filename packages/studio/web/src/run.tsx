/** One run: its waterfall, the conversation, and beside it what the model received. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { CallRow, MessageItem, RunView, SpanRow } from '../../src/wire.js';
import { Allowances } from './allowances.js';
import { api } from './api.js';
import { QuestionCard } from './approvals.js';
import { Conversation, keyOf } from './conversation.js';
import { dollars, duration, exactly, moment, tokens } from './format.js';
import { copy, Loading, Problem, Status, Text } from './parts.js';
import { Received } from './received.js';
import { hearRuns, linkTo, narrow, say } from './state.js';
import { Waterfall } from './waterfall.js';

type Pane = 'timeline' | 'conversation' | 'received';

export function RunScreen({ session, run }: { readonly session: string; readonly run: string }) {
  const [view, setView] = useState<RunView>();
  const [error, setError] = useState<string>();
  const [span, setSpan] = useState<string>();
  const [reveal, setReveal] = useState<string>();
  const [pane, setPane] = useState<Pane>('conversation');
  const [call, setCall] = useState<number>();
  const loading = useRef(false);
  const load = async () => {
    if (loading.current) return;
    loading.current = true;
    try {
      setView(await api.run({ session, run }));
      setError(undefined);
    } catch (problem) {
      setError((problem as Error).message);
    } finally {
      loading.current = false;
    }
  };
  useEffect(() => {
    void load();
    const ours = (id: string) => id === session || id.startsWith(`${session}/`);
    return hearRuns({ hello: load, runs: (rows) => rows.some((row) => ours(row.sessionId)) && void load() });
  }, [session, run]);
  const now = useNow(view?.row.status === 'running' || view?.row.status === 'suspended');

  if (error && !view)
    return (
      <Problem error={error} retry={load}>
        <a href={linkTo('runs')}>To the runs</a>
      </Problem>
    );
  if (!view) return <Loading what="Reading the run…" />;
  const chooseSpan = (one: SpanRow) => {
    setSpan(one.id);
    const item = view.items.find(({ id, role }) => id === one.messageId && role === 'assistant');
    if (item) choose(item);
  };
  const choose = (item: MessageItem) => {
    setReveal(keyOf(item));
    const made = view.calls.findLast(({ messageId }) => messageId === item.id);
    if (made) setCall(made.n);
  };
  const chooseCall = (one: CallRow) => {
    setCall(one.n);
    const item = view.items.find(({ id, role }) => id === one.messageId && role === 'assistant');
    if (item) setReveal(keyOf(item));
  };
  const panes: readonly (readonly [Pane, string])[] = [
    ['timeline', 'Waterfall'],
    ['conversation', 'Conversation'],
    ['received', 'Received'],
  ];
  const shows = (one: Pane) => !narrow.value || pane === one;
  return (
    <section class="screen run">
      <Header view={view} now={now} />
      {error && <Problem error={error} retry={load} />}
      {view.questions.length > 0 && (
        <div class="questions">
          {view.questions.map((question) => (
            <QuestionCard key={question.request.id} question={question} onAnswered={load} compact />
          ))}
        </div>
      )}
      <Allowances session={session} />
      {narrow.value && (
        <div class="segments" role="tablist">
          {panes.map(([one, label]) => (
            <button
              key={one}
              type="button"
              role="tab"
              aria-selected={pane === one}
              onClick={() => setPane(one)}
            >
              {label}
            </button>
          ))}
        </div>
      )}
      <div class="panes">
        {shows('timeline') && (
          <section class="pane timeline" aria-label="Waterfall">
            <Waterfall spans={view.spans} now={now} chosen={span} onChoose={chooseSpan} />
          </section>
        )}
        {shows('conversation') && (
          <section class="pane" aria-label="Conversation">
            <h2>Conversation</h2>
            <Conversation
              items={view.items}
              session={session}
              reveal={reveal}
              onChoose={(item) => {
                choose(item);
                setPane('received');
              }}
            />
          </section>
        )}
        {shows('received') && (
          <section class="pane" aria-label="What the model received">
            <Received id={{ session, run }} calls={view.calls} chosen={call} onChoose={chooseCall} />
          </section>
        )}
      </div>
    </section>
  );
}

function Header({ view, now }: { readonly view: RunView; readonly now: number }) {
  const { row } = view;
  const took = (row.status === 'running' ? now : row.updatedAt) - row.startedAt;
  const facts: readonly (readonly [string, string, string?])[] = [
    ['Started', moment(row.startedAt), exactly(row.startedAt)],
    ['Took', duration(took)],
    ['Turns', String(row.turns)],
    ['Tool calls', row.toolErrors > 0 ? `${row.toolCalls}, ${row.toolErrors} failed` : String(row.toolCalls)],
    ['Tokens', `${tokens(row.usage.inputTokens)} in, ${tokens(row.usage.outputTokens)} out`],
    ['Cost', dollars(row.costUsd)],
    ['Model', row.models.join(', ') || '–'],
    ['Session', row.sessionId],
    ...(row.tenant === undefined ? [] : [['Tenant', row.tenant] as const]),
    ...(row.verdicts.length === 0
      ? []
      : [
          [
            'Guards',
            row.verdicts.map(({ by, action, count: n }) => `${by} ${action} × ${n}`).join(', '),
          ] as const,
        ]),
  ];
  return (
    <header class="run-head">
      <div class="title">
        <a class="back" href={linkTo('runs')} aria-label="Back to the runs">
          ←
        </a>
        <h1>
          <Text>{row.input || 'Run without text'}</Text>
        </h1>
        <Status row={row} />
        <span class="actions">
          <a class="button" href={linkTo('onion', { session: row.sessionId, run: row.runId })}>
            Onion
          </a>
          <a class="button" href={api.exportAddress({ session: row.sessionId, run: row.runId })} download>
            Export
          </a>
          <button type="button" onClick={() => copyTest(row.sessionId, row.runId)}>
            Copy as a test
          </button>
        </span>
      </div>
      {row.stop?.message && row.status !== 'done' && (
        <p class={row.status === 'error' ? 'why bad' : 'why'}>
          <Text>{row.stop.message}</Text>
          {row.stop.by && (
            <span class="muted">
              {' '}
              by <Text>{row.stop.by}</Text>
            </span>
          )}
        </p>
      )}
      <dl class="facts">
        {facts.map(([name, value, title]) => (
          <div key={name} title={title}>
            <dt>{name}</dt>
            <dd>
              <Text>{value}</Text>
            </dd>
          </div>
        ))}
      </dl>
    </header>
  );
}

async function copyTest(session: string, run: string): Promise<void> {
  try {
    const { code, file } = await api.test({ session, run }, 'node');
    say(
      (await copy(code))
        ? `Copied a test. Paste it into ${file}, and run node --test.`
        : 'The browser did not allow copying.',
    );
  } catch (error) {
    say((error as Error).message);
  }
}

/** The current time, updated every second while the run is under way. */
function useNow(runs: boolean): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!runs) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [runs]);
  return now;
}
