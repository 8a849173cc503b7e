/** Money and tokens: a chart per day, and a table per model, tenant or session. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { SpendBy, SpendPoint } from '../../src/wire.js';
import { api } from './api.js';
import { count, dollars, tokens } from './format.js';
import { Empty, Loading, Problem, Text } from './parts.js';
import { linkTo, route, setQuery, theme } from './state.js';

type What = 'cost' | 'tokens';
const BY: readonly SpendBy[] = ['model', 'tenant', 'session'];
/** How many keys get a line of their own. The others share one more. */
const LINES = 5;

export function Money() {
  const by = (BY.find((one) => one === route.value.query.by) ?? 'model') as SpendBy;
  const [points, setPoints] = useState<readonly SpendPoint[]>();
  const [sessions, setSessions] = useState(0);
  const [more, setMore] = useState(true);
  const [error, setError] = useState<string>();
  const [what, setWhat] = useState<What>('cost');
  useEffect(() => {
    let left = false;
    const load = async () => {
      let all = new Map<string, SpendPoint>();
      let read = 0;
      let next: string | undefined;
      setMore(true);
      do {
        const page = await api.money(by, next);
        if (left) return;
        all = summed(all, page.points);
        read += page.sessions;
        next = page.next;
        setPoints([...all.values()]);
        setSessions(read);
      } while (next !== undefined);
      setMore(false);
    };
    load().catch((problem) => !left && setError(problem.message));
    return () => {
      left = true;
    };
  }, [by]);
  const table = useMemo(() => byKey(points ?? []), [points]);
  if (error) return <Problem error={error} />;
  if (!points) return <Loading what="Adding up…" />;
  if (points.length === 0 && !more)
    return (
      <Empty title="Nothing was spent">
        <p>Tokens and their cost appear here once runs have called a model.</p>
      </Empty>
    );
  const total = table.reduce((sum, one) => sum + one.costUsd, 0);
  const all = table.reduce((sum, one) => sum + one.inputTokens + one.outputTokens, 0);
  return (
    <section class="screen scrolls money">
      <header class="onion-head">
        <h1>Money and tokens</h1>
        <div class="segments">
          {BY.map((one) => (
            <button key={one} type="button" aria-pressed={by === one} onClick={() => setQuery({ by: one })}>
              per {one}
            </button>
          ))}
        </div>
        <div class="segments">
          {(['cost', 'tokens'] as const).map((one) => (
            <button key={one} type="button" aria-pressed={what === one} onClick={() => setWhat(one)}>
              {one === 'cost' ? 'Cost' : 'Tokens'}
            </button>
          ))}
        </div>
      </header>
      <p class="muted">
        {dollars(total)} and {tokens(all)} in {count(sessions, 'session')}
        {more ? ', still reading…' : ''}
      </p>
      <Chart points={points} keys={table.slice(0, LINES).map(({ key }) => key)} what={what} />
      <table class="sums">
        <thead>
          <tr>
            <th scope="col">{by === 'model' ? 'Model' : by === 'tenant' ? 'Tenant' : 'Session'}</th>
            <th scope="col">Input</th>
            <th scope="col">Output</th>
            <th scope="col">From cache</th>
            <th scope="col">Cost</th>
          </tr>
        </thead>
        <tbody>
          {table.slice(0, 100).map((one) => (
            <tr key={one.key}>
              <th scope="row">
                {by === 'session' ? (
                  <a href={linkTo('runs', { text: one.key })}>
                    <Text>{one.key}</Text>
                  </a>
                ) : (
                  <Text>{one.key}</Text>
                )}
              </th>
              <td>{tokens(one.inputTokens)}</td>
              <td>{tokens(one.outputTokens)}</td>
              <td>{tokens(one.cacheRead)}</td>
              <td>
                {dollars(one.costUsd)}
                {one.unpriced > 0 && <small class="muted"> some without a price</small>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {table.length > 100 && <p class="muted">The 100 largest of {count(table.length, 'line')}.</p>}
    </section>
  );
}

type Sum = Omit<SpendPoint, 'day'>;

function summed(before: Map<string, SpendPoint>, more: readonly SpendPoint[]): Map<string, SpendPoint> {
  const all = new Map(before);
  for (const point of more) {
    const id = `${point.day} ${point.key}`;
    const known = all.get(id);
    all.set(id, known ? { ...plus(known, point), day: point.day } : point);
  }
  return all;
}

function plus(a: Sum, b: Sum): Sum {
  return {
    key: a.key,
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cacheRead: a.cacheRead + b.cacheRead,
    costUsd: a.costUsd + b.costUsd,
    unpriced: a.unpriced + b.unpriced,
  };
}

/** Sums by key, the largest first. */
function byKey(points: readonly SpendPoint[]): readonly Sum[] {
  const all = new Map<string, Sum>();
  for (const point of points) {
    const known = all.get(point.key);
    all.set(point.key, known ? plus(known, point) : point);
  }
  return [...all.values()].sort((a, b) => b.costUsd - a.costUsd || b.inputTokens - a.inputTokens);
}

const DAY = 86_400_000;

/** A line for each of the largest keys, and one for all others. Stacked bars would hide the small ones. */
function Chart({
  points,
  keys,
  what,
}: {
  readonly points: readonly SpendPoint[];
  readonly keys: readonly string[];
  readonly what: What;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (width < 50 || points.length === 0) return;
    let chart: { destroy(): void } | undefined;
    let left = false;
    void import('./chart.js').then(({ draw }) => {
      if (!left) chart = draw(box.current!, width, seriesOf(points, keys, what), what);
    });
    return () => {
      left = true;
      chart?.destroy();
    };
  }, [points, keys.join('\n'), what, width, theme.value]);
  return (
    <div class="chart" ref={box} role="img" aria-label={`${what === 'cost' ? 'Cost' : 'Tokens'} per day`} />
  );
}

export interface Series {
  readonly days: readonly number[];
  readonly lines: readonly { readonly name: string; readonly values: readonly number[] }[];
}

function seriesOf(points: readonly SpendPoint[], keys: readonly string[], what: What): Series {
  const first = Math.min(...points.map(({ day }) => day));
  const last = Math.max(...points.map(({ day }) => day));
  const days: number[] = [];
  // At least a week, so that one day is not a line without length. Half a day more, for days of 23 hours.
  for (let at = Math.min(first, last - 6 * DAY); at <= last + DAY / 2; at += DAY)
    days.push(startOfDay(at + DAY / 2));
  const value = (point: SpendPoint) =>
    what === 'cost' ? point.costUsd : point.inputTokens + point.outputTokens;
  const rest = points.some(({ key }) => !keys.includes(key)) ? ['everything else'] : [];
  const sums = new Map<string, number>();
  for (const point of points) {
    const id = `${point.day} ${keys.includes(point.key) ? point.key : 'everything else'}`;
    sums.set(id, (sums.get(id) ?? 0) + value(point));
  }
  return {
    days,
    lines: [...keys, ...rest].map((name) => ({
      name,
      values: days.map((day) => sums.get(`${day} ${name}`) ?? 0),
    })),
  };
}

function startOfDay(at: number): number {
  const day = new Date(at);
  return new Date(day.getFullYear(), day.getMonth(), day.getDate()).getTime();
}
