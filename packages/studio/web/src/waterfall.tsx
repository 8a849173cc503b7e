/** The waterfall: a bar for everything in a run that took time. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { SpanRow } from '../../src/wire.js';
import { duration } from './format.js';
import { Text } from './parts.js';
import { Rows } from './virtual.js';

const KINDS: Readonly<Record<SpanRow['kind'], string>> = {
  turn: 'turn',
  model: 'model call',
  tool: 'tool call',
  wait: 'waits for a person',
  attempt: 'another attempt',
  agent: 'sub-agent',
};

export function Waterfall({
  spans,
  now,
  chosen,
  onChoose,
}: {
  readonly spans: readonly SpanRow[];
  /** Where bars end that are not over yet. */
  readonly now: number;
  readonly chosen: string | undefined;
  readonly onChoose: (span: SpanRow) => void;
}) {
  const [real, setReal] = useState(false);
  const scale = useMemo(() => (real ? linear(spans, now) : squeezed(spans, now)), [spans, now, real]);
  const squeezes = useMemo(() => squeezed(spans, now).squeezes, [spans, now]);
  const index = spans.findIndex(({ id }) => id === chosen);
  const at = useRef(index);
  at.current = index;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target instanceof HTMLElement && event.target.closest('input, textarea, select')) return;
      const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
      if (step === undefined || spans.length === 0) return;
      at.current = Math.max(0, Math.min(spans.length - 1, at.current + step));
      onChoose(spans[at.current]!);
      event.preventDefault();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [spans]);
  return (
    <div class="waterfall">
      <div class="bar-head">
        <span class="muted">{duration(scale.total)}</span>
        {squeezes && (
          <label class="check">
            <input
              type="checkbox"
              checked={real}
              onChange={(event) => setReal(event.currentTarget.checked)}
            />
            <span>Idle time in full</span>
          </label>
        )}
      </div>
      <Rows
        class="bars"
        aria-label="Waterfall"
        items={spans}
        rowHeight={30}
        selected={index}
        render={(span) => (
          <Bar
            key={span.id}
            span={span}
            now={now}
            place={scale.place}
            chosen={span.id === chosen}
            onChoose={onChoose}
          />
        )}
      />
    </div>
  );
}

function Bar({
  span,
  now,
  place,
  chosen,
  onChoose,
}: {
  readonly span: SpanRow;
  readonly now: number;
  readonly place: (at: number) => number;
  readonly chosen: boolean;
  readonly onChoose: (span: SpanRow) => void;
}) {
  const end = span.end ?? now;
  const left = place(span.start);
  const width = Math.max(0, place(end) - left);
  const took = span.end === undefined ? `${duration(end - span.start)} so far` : duration(end - span.start);
  return (
    <button
      type="button"
      class={`bar ${span.kind} ${span.status}`}
      aria-pressed={chosen}
      aria-label={`${KINDS[span.kind]}: ${span.label}, ${took}, ${span.status}`}
      onClick={() => onChoose(span)}
    >
      <span class="name" style={{ paddingLeft: `${span.depth * 14}px` }}>
        <span class="line">
          <Text>{span.label}</Text>
        </span>
        {span.note && (
          <small class="line muted">
            <Text>{span.note}</Text>
          </small>
        )}
      </span>
      <span class="track">
        <i style={{ left: `${left * 100}%`, width: `max(3px, ${width * 100}%)` }} />
        <small
          style={
            left + width > 0.8 ? { right: `${(1 - left) * 100}%` } : { left: `${(left + width) * 100}%` }
          }
        >
          {took}
        </small>
      </span>
    </button>
  );
}

interface Scale {
  readonly place: (at: number) => number;
  readonly total: number;
  readonly squeezes: boolean;
}

function range(spans: readonly SpanRow[], now: number): readonly [number, number] {
  let from = Number.POSITIVE_INFINITY;
  let to = 0;
  for (const { start, end } of spans) {
    from = Math.min(from, start);
    to = Math.max(to, end ?? now);
  }
  return [from, Math.max(to, from + 1)];
}

function linear(spans: readonly SpanRow[], now: number): Scale {
  const [from, to] = range(spans, now);
  return { place: (at) => (at - from) / (to - from), total: to - from, squeezes: false };
}

/** Time without work, while a person was thinking or the process was gone, is a narrow strip, however long it was. */
function squeezed(spans: readonly SpanRow[], now: number): Scale {
  const [from, to] = range(spans, now);
  const waits = new Set(spans.filter(({ kind }) => kind === 'wait').map(({ messageId }) => messageId));
  const work = spans
    .filter(
      ({ kind, messageId }) =>
        kind === 'model' || kind === 'attempt' || (kind === 'tool' && !waits.has(messageId)),
    )
    .map(({ start, end }) => [start, end ?? now] as [number, number])
    .sort(([a], [b]) => a - b);
  const busy: [number, number][] = [];
  for (const [start, end] of work) {
    const last = busy.at(-1);
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else busy.push([start, end]);
  }
  const active = busy.reduce((sum, [start, end]) => sum + end - start, 0);
  const strip = Math.max(1, active * 0.04);
  const edges: { at: number; x: number }[] = [{ at: from, x: 0 }];
  let x = 0;
  let squeezes = false;
  const gap = (until: number) => {
    const length = until - edges.at(-1)!.at;
    if (length <= 0) return;
    if (length > strip * 1.5) squeezes = true;
    x += Math.min(length, strip);
    edges.push({ at: until, x });
  };
  for (const [start, end] of busy) {
    gap(start);
    x += end - start;
    edges.push({ at: end, x });
  }
  gap(to);
  const place = (at: number) => {
    let low = 0;
    let high = edges.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (edges[middle]!.at <= at) low = middle;
      else high = middle - 1;
    }
    const here = edges[low]!;
    const next = edges[low + 1];
    if (!next || next.at === here.at) return here.x / (x || 1);
    return (here.x + ((at - here.at) / (next.at - here.at)) * (next.x - here.x)) / (x || 1);
  };
  return { place, total: to - from, squeezes };
}
