/** The playground: two columns, each with middleware of its own switched off, and one message for both. */
import { useRef, useState } from 'preact/hooks';
import type { PlayEvent } from '../../src/wire.js';
import { play } from './api.js';
import { count, dollars, duration, tokens } from './format.js';
import { Empty, Text } from './parts.js';
import { info, linkTo } from './state.js';

interface Line {
  readonly kind: 'you' | 'text' | 'call' | 'result' | 'note' | 'end';
  readonly text: string;
  readonly bad?: boolean;
}

interface Side {
  readonly off: readonly string[];
  readonly lines: readonly Line[];
  readonly sessionId: string;
  readonly runId?: string;
  readonly busy: boolean;
}

const newSide = (): Side => ({
  off: [],
  lines: [],
  sessionId: `play-${crypto.randomUUID().slice(0, 8)}`,
  busy: false,
});

export function Playground() {
  const agents = info.value?.agents ?? [];
  const [name, setName] = useState<string>();
  const [text, setText] = useState('');
  const [lastInput, setLastInput] = useState<string>();
  const [sides, setSides] = useState<readonly Side[]>([newSide()]);
  const controls = useRef(new Set<AbortController>());
  const agent = agents.find((one) => one.name === name) ?? agents[0];
  if (!info.value) return null;
  if (!agent)
    return (
      <Empty title="No agent to talk to">
        <p>{info.value.problem ?? 'Start Studio in the folder of a config, or give it agents.'}</p>
      </Empty>
    );
  if (!info.value.allowAnswers)
    return (
      <Empty title="Studio is read-only">
        <p>
          Talking to an agent calls models and tools. Start Studio with <code>--allow-answers</code> to allow
          it.
        </p>
      </Empty>
    );
  const change = (index: number, how: (side: Side) => Side) =>
    setSides((before) => before.map((side, i) => (i === index ? how(side) : side)));
  const send = (input: string, fresh: boolean) => {
    if (input.trim() === '') return;
    setLastInput(input);
    setText('');
    for (const [index, side] of sides.entries()) {
      const sessionId = fresh ? newSide().sessionId : side.sessionId;
      change(index, (one) => ({
        ...one,
        ...{ sessionId, busy: true },
        lines: [...(fresh ? [] : one.lines), { kind: 'you', text: input }],
      }));
      const control = new AbortController();
      controls.current.add(control);
      play(
        { agent: agent.name, sessionId, input, off: side.off },
        (event) => change(index, (one) => heard(one, event)),
        control.signal,
      )
        .catch((error) => change(index, (one) => added(one, { kind: 'end', text: error.message, bad: true })))
        .finally(() => {
          controls.current.delete(control);
          change(index, (one) => ({ ...one, busy: false }));
        });
    }
  };
  const busy = sides.some((side) => side.busy);
  return (
    <section class="screen playground">
      <header class="onion-head">
        <h1>Playground</h1>
        {agents.length > 1 ? (
          <select
            aria-label="Agent"
            value={agent.name}
            onChange={(event) => setName(event.currentTarget.value)}
          >
            {agents.map((one) => (
              <option key={one.name}>{one.name}</option>
            ))}
          </select>
        ) : (
          <span class="muted">
            <Text>{`${agent.name} · ${agent.model}`}</Text>
          </span>
        )}
        <span class="actions">
          <button
            type="button"
            onClick={() =>
              setSides((before) => (before.length === 1 ? [...before, newSide()] : before.slice(0, 1)))
            }
          >
            {sides.length === 1 ? 'Compare side by side' : 'One column'}
          </button>
          <button
            type="button"
            onClick={() => setSides((before) => before.map((side) => ({ ...newSide(), off: side.off })))}
            disabled={busy}
          >
            Start over
          </button>
        </span>
      </header>
      <div class={`sides n${sides.length}`}>
        {sides.map((side, index) => (
          <Column
            key={index}
            title={sides.length === 1 ? undefined : index === 0 ? 'A' : 'B'}
            side={side}
            middleware={agent.middleware}
            onOff={(off) => change(index, (one) => ({ ...one, off }))}
          />
        ))}
      </div>
      <form
        class="say"
        onSubmit={(event) => {
          event.preventDefault();
          send(text, false);
        }}
      >
        <textarea
          rows={2}
          aria-label="Message"
          placeholder="Say something to the agent…"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.shiftKey) return;
            event.preventDefault();
            if (!busy) send(text, false);
          }}
        />
        <div class="actions">
          <button type="submit" class="primary" disabled={busy || text.trim() === ''}>
            Send
          </button>
          <button
            type="button"
            disabled={busy || lastInput === undefined}
            onClick={() => send(lastInput!, true)}
          >
            Run again
          </button>
          {busy && (
            <button
              type="button"
              onClick={() => {
                for (const control of controls.current) control.abort();
              }}
            >
              Stop
            </button>
          )}
        </div>
      </form>
    </section>
  );
}

function Column({
  title,
  side,
  middleware,
  onOff,
}: {
  readonly title: string | undefined;
  readonly side: Side;
  readonly middleware: readonly string[];
  readonly onOff: (off: readonly string[]) => void;
}) {
  const on = middleware.length - side.off.length;
  return (
    <section class="side" aria-label={title ? `Column ${title}` : 'Conversation'}>
      <details class="switches" open={title !== undefined}>
        <summary>
          {title && <b>{title} · </b>}
          {side.off.length === 0
            ? `All ${middleware.length} middleware are on`
            : `${on} of ${middleware.length} middleware on`}
        </summary>
        <div class="chips">
          {middleware.map((name) => {
            const off = side.off.includes(name);
            return (
              <button
                key={name}
                type="button"
                class="chip"
                role="switch"
                aria-checked={!off}
                onClick={() => onOff(off ? side.off.filter((one) => one !== name) : [...side.off, name])}
              >
                <Text>{name}</Text>
              </button>
            );
          })}
        </div>
      </details>
      <div class="flow talk" role="log" aria-live="polite">
        {side.lines.length === 0 && (
          <p class="hint">Nothing was said yet. Runs are kept until Studio ends, not in your store.</p>
        )}
        {side.lines.map((line, index) => (
          <p key={index} class={`said ${line.kind}${line.bad ? ' bad' : ''}`}>
            <Text>{line.text}</Text>
          </p>
        ))}
        {side.busy && <p class="hint">…</p>}
        {side.runId && !side.busy && (
          <p class="hint">
            <a href={linkTo('run', { session: side.sessionId, run: side.runId })}>Look at the run</a>
          </p>
        )}
      </div>
    </section>
  );
}

function added(side: Side, line: Line): Side {
  return { ...side, lines: [...side.lines, line] };
}

function heard(side: Side, event: PlayEvent): Side {
  switch (event.type) {
    case 'start':
      return side;
    case 'text': {
      const last = side.lines.at(-1);
      if (last?.kind !== 'text') return added(side, { kind: 'text', text: event.text });
      return { ...side, lines: [...side.lines.slice(0, -1), { kind: 'text', text: last.text + event.text }] };
    }
    case 'reset':
      return side.lines.at(-1)?.kind === 'text' ? { ...side, lines: side.lines.slice(0, -1) } : side;
    case 'call':
      return added(side, { kind: 'call', text: `calls ${event.name} ${event.arguments}` });
    case 'result':
      return added(side, { kind: 'result', text: `${event.name}: ${event.text}`, bad: event.isError });
    case 'waits':
      return added(side, { kind: 'note', text: `${event.name} waits for an answer: see Approvals.` });
    case 'verdict': {
      const note: Line = { kind: 'note', text: `${event.by}: ${event.action} at ${event.point}` };
      const last = side.lines.at(-1);
      // Guards judge while the answer streams. Their notes stand before it, so that they don't cut it in two.
      if (last?.kind !== 'text') return added(side, note);
      return { ...side, lines: [...side.lines.slice(0, -1), note, last] };
    }
    case 'end': {
      const facts = [
        event.status,
        event.turns === undefined ? undefined : count(event.turns, 'turn'),
        duration(event.ms),
        event.totalTokens === undefined ? undefined : tokens(event.totalTokens),
        event.costUsd === undefined ? undefined : dollars(event.costUsd),
      ].filter(Boolean);
      const changes = (event.changes ?? []).map(
        ({ turn, by, what }): Line => ({ kind: 'note', text: `turn ${turn}, ${by}: ${what}` }),
      );
      const why: Line[] = event.message
        ? [{ kind: 'end', text: event.message, bad: event.status === 'error' }]
        : [];
      return {
        ...side,
        ...(event.runId !== undefined && { runId: event.runId }),
        lines: [...side.lines, ...changes, ...why, { kind: 'end', text: facts.join(' · ') }],
      };
    }
  }
}
