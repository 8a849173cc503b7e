/** What the model received in one call: differences to the history highlighted, and who made them. */
import { diffWordsWithSpace } from 'diff';
import { useEffect, useState } from 'preact/hooks';
import type { CallRow, ReceivedMessage, ReceivedView } from '../../src/wire.js';
import { api, type Id } from './api.js';
import { count, duration, shown } from './format.js';
import { copy, Loading, LongText, Problem, Text } from './parts.js';
import { say } from './state.js';
import { Flow } from './virtual.js';

export function Received({
  id,
  calls,
  chosen,
  onChoose,
}: {
  readonly id: Id;
  readonly calls: readonly CallRow[];
  /** The number of the call. */
  readonly chosen: number | undefined;
  readonly onChoose: (call: CallRow) => void;
}) {
  const index = Math.max(
    0,
    calls.findIndex(({ n }) => n === chosen),
  );
  const call = calls[index];
  const [view, setView] = useState<ReceivedView>();
  const [error, setError] = useState<string>();
  const [raw, setRaw] = useState<string>();
  useEffect(() => {
    setRaw(undefined);
    setError(undefined);
    if (!call) return;
    let left = false;
    api.received(id, call.n).then(
      (one) => !left && setView(one),
      (problem) => !left && setError(problem.message),
    );
    return () => {
      left = true;
    };
  }, [call?.n, calls.length]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target instanceof HTMLElement && event.target.closest('input, textarea, select')) return;
      const step = { '[': -1, ']': 1 }[event.key];
      const next = step === undefined ? undefined : calls[index + step];
      if (next) onChoose(next);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [calls, index]);
  if (!call) return <p class="hint">No model was called yet.</p>;
  const showRaw = async () => {
    if (raw !== undefined) return setRaw(undefined);
    try {
      setRaw(JSON.stringify(await api.raw(id, call.n), undefined, 2));
    } catch (problem) {
      setError((problem as Error).message);
    }
  };
  return (
    <>
      <div class="pane-head">
        <h2>What the model received</h2>
        <span class="stepper">
          <button
            type="button"
            class="quiet"
            disabled={index === 0}
            aria-label="Previous call"
            onClick={() => onChoose(calls[index - 1]!)}
          >
            ‹
          </button>
          <span>
            call {index + 1} of {calls.length}
          </span>
          <button
            type="button"
            class="quiet"
            disabled={index === calls.length - 1}
            aria-label="Next call"
            onClick={() => onChoose(calls[index + 1]!)}
          >
            ›
          </button>
        </span>
        <button type="button" class="quiet" aria-pressed={raw !== undefined} onClick={showRaw}>
          {raw === undefined ? 'Raw request' : 'Readable'}
        </button>
      </div>
      {error && <Problem error={error} />}
      {raw !== undefined ? (
        <Raw text={raw} />
      ) : view?.call.n === call.n ? (
        <Request view={view} call={call} />
      ) : (
        !error && <Loading what="Reading the request…" />
      )}
    </>
  );
}

/** A request may be large: its beginning is shown, all of it is copied. */
const RAW = 60_000;

function Raw({ text }: { readonly text: string }) {
  return (
    <div class="flow raw">
      <p class="hint">
        {count(text.length, 'character')}{' '}
        <button
          type="button"
          class="quiet"
          onClick={async () => say((await copy(text)) ? 'Copied.' : 'The browser did not allow copying.')}
        >
          Copy all
        </button>
      </p>
      <pre>
        <Text>{text.slice(0, RAW)}</Text>
        {text.length > RAW && `\n… ${count(text.length - RAW, 'character')} more: copy to see them`}
      </pre>
    </div>
  );
}

type Block =
  | { readonly type: 'note'; readonly key: string }
  | { readonly type: 'prompt'; readonly key: string }
  | { readonly type: 'message'; readonly key: string; readonly message: ReceivedMessage };

function Request({ view, call }: { readonly view: ReceivedView; readonly call: CallRow }) {
  const blocks: Block[] = [
    { type: 'note', key: 'note' },
    ...(view.systemPrompt ? [{ type: 'prompt' as const, key: 'prompt' }] : []),
    ...view.messages.map((message, index) => ({ type: 'message' as const, key: String(index), message })),
  ];
  return (
    <Flow
      class="flow"
      aria-label="What the model received"
      tabIndex={0}
      items={blocks}
      keyOf={({ key }) => `${call.n} ${key}`}
      guess={90}
      render={(block) =>
        block.type === 'note' ? (
          <Note view={view} call={call} />
        ) : block.type === 'prompt' ? (
          <Prompt view={view} />
        ) : (
          <Got message={block.message} />
        )
      }
    />
  );
}

function Note({ view, call }: { readonly view: ReceivedView; readonly call: CallRow }) {
  const acts = view.acts.filter(({ did }) => did !== 'noted');
  return (
    <div class="hint">
      <p>
        Turn {call.turn}
        {call.attempt > 1 && `, attempt ${call.attempt}`}
        {call.model && ` · ${shown(call.model)}`}
        {call.by && ` · called by ${shown(call.by)}`}
        {view.tools && ` · ${count(view.tools.length, 'tool')}`}
        {call.failed && <span class="bad"> · failed: {shown(call.failed)}</span>}
      </p>
      {view.basis === 'history' ? (
        <p>
          This run was not traced, so these are the messages before middleware. Give the agent{' '}
          <code>trace: 'changes'</code> to see what it made of them.
        </p>
      ) : acts.length === 0 ? (
        <p>No middleware changed this request.</p>
      ) : (
        <ul class="acts">
          {acts.map((act, index) => (
            <li key={index}>
              <b>
                <Text>{act.by}</Text>
              </b>{' '}
              <Text>{act.what || act.did}</Text> <span class="muted">({act.hook})</span>
              {act.ms !== undefined && act.ms >= 1 && <span class="muted"> {duration(act.ms)}</span>}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Prompt({ view }: { readonly view: ReceivedView }) {
  const { text, by, was } = view.systemPrompt!;
  return (
    <article class={`message system${by ? ' changed' : ''}`}>
      <header>
        <b>System prompt</b>
        <By names={by} word="written by" />
      </header>
      {text === '' ? (
        <p class="muted">none</p>
      ) : was === undefined ? (
        <LongText text={text} />
      ) : (
        <Diff from={was} to={text} />
      )}
    </article>
  );
}

const WORDS = { same: '', changed: 'rewritten by', added: 'added by', removed: 'left out by' } as const;

function Got({ message }: { readonly message: ReceivedMessage }) {
  return (
    <article class={`message ${message.role} ${message.change}`}>
      <header>
        <b>{message.role === 'user' ? 'User' : message.role === 'tool' ? 'Tool result' : 'Assistant'}</b>
        <By names={message.by} word={WORDS[message.change]} />
      </header>
      {message.was !== undefined ? (
        <Diff from={message.was} to={message.text} />
      ) : (
        <LongText text={message.text} cut={message.cut} code={message.role === 'tool'} />
      )}
    </article>
  );
}

function By({ names, word }: { readonly names: readonly string[] | undefined; readonly word: string }) {
  if (!names || names.length === 0) return null;
  return (
    <span class="tag accent">
      {word} <Text>{names.join(', ')}</Text>
    </span>
  );
}

/** Words that were taken out and put in. */
function Diff({ from, to }: { readonly from: string; readonly to: string }) {
  return (
    <div class="long diff">
      {diffWordsWithSpace(from, to, { timeout: 200 })?.map((part, index) =>
        part.added ? (
          <ins key={index}>
            <Text>{part.value}</Text>
          </ins>
        ) : part.removed ? (
          <del key={index}>
            <Text>{part.value}</Text>
          </del>
        ) : (
          <Text key={index}>{part.value}</Text>
        ),
      ) ?? <Text>{to}</Text>}
    </div>
  );
}
