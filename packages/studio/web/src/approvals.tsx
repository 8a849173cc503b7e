/** The inbox: what runs ask people, and the ways to answer. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Question } from '../../src/wire.js';
import { api } from './api.js';
import { SchemaForm } from './form.js';
import { count, moment, pretty } from './format.js';
import { Empty, Loading, LongText, Problem, Text } from './parts.js';
import { hearRuns, info, linkTo, say, waiting } from './state.js';

export function Approvals() {
  const [questions, setQuestions] = useState<readonly Question[]>();
  const [more, setMore] = useState<string>();
  const [error, setError] = useState<string>();
  const load = async () => {
    try {
      // A page of sessions may have no questions: read on until some are found.
      let found: readonly Question[] = [];
      let next: string | undefined;
      do {
        const page = await api.approvals(next);
        found = [...found, ...page.questions];
        next = page.next;
        setQuestions(found);
      } while (next !== undefined && found.length < 50);
      setMore(next);
      waiting.value = found.filter((one) => one.answered === undefined).length;
      setError(undefined);
    } catch (problem) {
      setError((problem as Error).message);
    }
  };
  useEffect(() => {
    void load();
    return hearRuns({ hello: load, runs: () => void load() });
  }, []);
  return (
    <section class="screen approvals">
      <h1>Approvals</h1>
      {error && <Problem error={error} retry={load} />}
      {!questions && !error && <Loading what="Looking for open questions…" />}
      {questions?.length === 0 && more === undefined && (
        <Empty title="Nothing waits for you">
          <p>
            When a run asks before it calls a tool, the question appears here, whichever process it runs in.
          </p>
        </Empty>
      )}
      {questions && questions.length > 0 && (
        <p class="muted">
          {count(questions.length, 'question')}
          {more === undefined ? '' : ' so far'}
        </p>
      )}
      <div class="inbox">
        {questions?.map((question) => (
          <QuestionCard
            key={`${question.sessionId} ${question.request.id}`}
            question={question}
            onAnswered={load}
          />
        ))}
      </div>
    </section>
  );
}

type Way = 'edit' | 'reject' | 'respond';

export function QuestionCard({
  question,
  onAnswered,
  compact = false,
}: {
  readonly question: Question;
  readonly onAnswered: () => void;
  /** On the page of its own run. */
  readonly compact?: boolean;
}) {
  const { request, sessionId, tenant, schema, answered } = question;
  const [way, setWay] = useState<Way>();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const [args, setArgs] = useState<unknown>(() => parsed(request.arguments));
  const [text, setText] = useState('');
  const fields = useRef({ problems: new Map<string, string>() });
  const form = useRef<HTMLFormElement>(null);
  const chose = useRef(false);
  // The button that was pressed is gone. Without a focus, the next key would start at the top of the page.
  useEffect(() => {
    if (chose.current) form.current?.querySelector<HTMLElement>('input, textarea, select, button')?.focus();
    chose.current = true;
  }, [way]);
  const may = (type: string) => !request.decisions || request.decisions.includes(type as 'approve');
  const allowed = info.value?.allowAnswers === true;
  const answer = async (decision: Record<string, unknown>) => {
    const [wrong] = way === 'edit' ? fields.current.problems.values() : [];
    if (wrong) return setProblem(wrong);
    setBusy(true);
    setProblem(undefined);
    try {
      const outcome = await api.answer({ sessionId, requestId: request.id, decision });
      say(outcome.taken ? 'Answered. The run goes on.' : `Answered. ${outcome.hint ?? ''}`);
      onAnswered();
    } catch (error) {
      setProblem((error as Error).message);
    } finally {
      setBusy(false);
    }
  };
  const differs =
    request.effectiveArguments !== undefined && request.effectiveArguments !== request.arguments;
  return (
    <article class="question" aria-label={request.title ?? `May ${request.toolName} run?`}>
      <header>
        <h2>
          <Text>
            {request.title ??
              (request.kind === 'ask' ? `May ${request.toolName} run?` : `${request.toolName} asks`)}
          </Text>
        </h2>
        <span class="muted">{moment(request.createdAt)}</span>
      </header>
      <p class="muted">
        {'tool '}
        <b>
          <Text>{request.toolName}</Text>
        </b>
        {request.by && (
          <>
            {' · asked by '}
            <Text>{request.by}</Text>
          </>
        )}
        {request.from && (
          <>
            {' · sub-agent '}
            <Text>{request.from.agent}</Text>
          </>
        )}
        {' · session '}
        <Text>{sessionId}</Text>
        {tenant !== undefined && (
          <>
            {' · tenant '}
            <Text>{tenant}</Text>
          </>
        )}
        {!compact && (
          <>
            {' · '}
            <a href={linkTo('run', { session: sessionId, run: request.runId })}>the run</a>
          </>
        )}
      </p>
      <div class="texts">
        {way !== 'edit' && (
          <section class="passed" aria-label="Arguments">
            <p class="muted">Arguments</p>
            <LongText text={pretty(request.arguments)} code />
          </section>
        )}
        {request.details !== undefined && (
          <section class="passed" aria-label="Details of the question">
            <p class="muted">Details of the question</p>
            <LongText text={JSON.stringify(request.details, undefined, 2)} code />
          </section>
        )}
      </div>
      {differs && (
        <details>
          <summary>What the tool would be called with</summary>
          <LongText text={pretty(request.effectiveArguments!)} code />
        </details>
      )}
      {answered !== undefined ? (
        <p class="tag wait">answered ({answered}); it counts when the run is resumed</p>
      ) : !allowed ? (
        <p class="muted">
          Studio is read-only. Start it with <code>--allow-answers</code> to answer here.
        </p>
      ) : (
        <form
          ref={form}
          onSubmit={(event) => {
            event.preventDefault();
            if (way === 'edit') void answer({ type: 'edit', args });
            else if (way === 'reject') void answer({ type: 'reject', ...(text && { reason: text }) });
            else if (way === 'respond') void answer({ type: 'respond', text });
          }}
        >
          {way === 'edit' && (
            <SchemaForm
              schema={(schema ?? {}) as Record<string, unknown>}
              value={args}
              onChange={setArgs}
              fields={fields.current}
            />
          )}
          {(way === 'reject' || way === 'respond') && (
            <div class="field">
              <label>
                {way === 'reject' ? 'Why not? The model reads this.' : 'The answer, in place of the tool’s'}
                <textarea rows={2} value={text} onInput={(event) => setText(event.currentTarget.value)} />
              </label>
            </div>
          )}
          {problem && (
            <p class="bad" role="alert">
              <Text>{problem}</Text>
            </p>
          )}
          <div class="actions">
            {way === undefined ? (
              <>
                {may('approve') && (
                  <button
                    type="button"
                    class="primary"
                    disabled={busy}
                    onClick={() => answer({ type: 'approve' })}
                  >
                    Approve
                  </button>
                )}
                {may('approve') && request.kind === 'ask' && request.remember !== false && (
                  <>
                    <button
                      type="button"
                      disabled={busy}
                      title={`Any call of ${request.toolName} for the rest of this session`}
                      onClick={() => answer({ type: 'approve', remember: 'tool' })}
                    >
                      Approve for this session
                    </button>
                    <button
                      type="button"
                      disabled={busy}
                      title={`Calls of ${request.toolName} with the same arguments, for the rest of this session`}
                      onClick={() => answer({ type: 'approve', remember: 'arguments' })}
                    >
                      Always approve this
                    </button>
                  </>
                )}
                {may('edit') && <Choose way="edit" label="Edit" set={setWay} />}
                {may('reject') && <Choose way="reject" label="Reject" set={setWay} />}
                {may('respond') && <Choose way="respond" label="Respond" set={setWay} />}
              </>
            ) : (
              <>
                <button type="submit" class="primary" disabled={busy || (way === 'respond' && text === '')}>
                  {way === 'edit' ? 'Approve with these' : way === 'reject' ? 'Reject' : 'Respond'}
                </button>
                <button
                  type="button"
                  class="quiet"
                  onClick={() => {
                    setWay(undefined);
                    setProblem(undefined);
                  }}
                >
                  Back
                </button>
              </>
            )}
          </div>
        </form>
      )}
    </article>
  );
}

function Choose({
  way,
  label,
  set,
}: {
  readonly way: Way;
  readonly label: string;
  readonly set: (way: Way) => void;
}) {
  return (
    <button type="button" onClick={() => set(way)}>
      {label}
    </button>
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
