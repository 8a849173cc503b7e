/** The list of runs: newest first, filtered, and live. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { DamagedSession, RunRow } from '../../src/wire.js';
import { api } from './api.js';
import { count, dollars, duration, exactly, moment, tokens } from './format.js';
import { Empty, Loading, Problem, STATUSES, Status, Text } from './parts.js';
import { go, hearRuns, info, linkTo, narrow, route, setQuery } from './state.js';
import { Rows } from './virtual.js';

interface List {
  readonly rows: readonly RunRow[];
  readonly next: string | undefined;
  readonly scanned: number;
  readonly damaged: readonly DamagedSession[];
  readonly loaded: boolean;
  readonly error?: string;
}

const EMPTY: List = { rows: [], next: undefined, scanned: 0, damaged: [], loaded: false };
const keyOf = ({ sessionId, runId }: RunRow) => `${sessionId} ${runId}`;

export function Runs() {
  const { query } = route.value;
  const [list, setList] = useState(EMPTY);
  const [selected, setSelected] = useState(-1);
  const [wanted, setWanted] = useState(0);
  const loading = useRef<AbortController | undefined>(undefined);
  const filter = JSON.stringify(query);

  // A new filter starts over; so does the list after a reconnect.
  const load = async (keep: boolean, cursor?: string) => {
    loading.current?.abort();
    const control = new AbortController();
    loading.current = control;
    if (!keep) setList(EMPTY);
    try {
      const page = await api.runs({ ...query, cursor }, control.signal);
      setList((before) => ({
        rows: cursor === undefined ? page.rows : merged(before.rows, page.rows),
        next: page.next,
        scanned: (cursor === undefined ? 0 : before.scanned) + page.scanned,
        damaged: [...(cursor === undefined ? [] : before.damaged), ...page.damaged],
        loaded: true,
      }));
    } catch (error) {
      if (control.signal.aborted) return;
      setList((before) => ({ ...before, loaded: true, error: (error as Error).message }));
    } finally {
      if (loading.current === control) loading.current = undefined;
    }
  };
  useEffect(() => {
    setSelected(-1);
    setWanted(0);
    void load(false);
    return hearRuns({
      hello: () => void (loading.current ?? load(true)),
      runs: (rows) =>
        setList((before) =>
          before.loaded ? { ...before, rows: updated(before.rows, rows, query) } : before,
        ),
    });
  }, [filter]);
  // Continues until there is something to see, or the end.
  useEffect(() => {
    if (
      list.loaded &&
      !list.error &&
      list.next !== undefined &&
      list.rows.length < Math.max(30, wanted) &&
      !loading.current
    )
      void load(true, list.next);
  }, [list, wanted]);

  const open = (row: RunRow | undefined) => row && go('run', { session: row.sessionId, run: row.runId });
  useKeys(list.rows, selected, setSelected, open);
  const filtered = Object.values(query).some((value) => value !== '');
  return (
    <section class="screen runs">
      <h1 class="unseen">Runs</h1>
      <Filters />
      {list.error && <Problem error={list.error} retry={() => load(false)} />}
      {!list.loaded && !list.error && <Loading what="Reading the newest runs…" />}
      {list.loaded && list.rows.length === 0 && list.next === undefined && !list.error && (
        <Nothing filtered={filtered} />
      )}
      {list.loaded && list.rows.length === 0 && list.next !== undefined && (
        <Loading what={`Searching: ${count(list.scanned, 'session')} so far…`} />
      )}
      {list.rows.length > 0 && (
        <>
          {!narrow.value && <Head />}
          <Rows
            class="table"
            aria-label="Runs, newest first"
            items={list.rows}
            rowHeight={narrow.value ? 76 : 48}
            selected={selected}
            onEnd={() => list.next !== undefined && setWanted(list.rows.length + 60)}
            render={(row, index) => <Row key={keyOf(row)} row={row} chosen={index === selected} />}
          />
          <p class="foot">
            {count(list.rows.length, 'run')}
            {list.next === undefined ? '' : ' so far; scroll for more'}
          </p>
        </>
      )}
      <Damaged sessions={list.damaged} />
    </section>
  );
}

/** Most stores have none, and a list of thousands helps nobody. */
const DAMAGED = 20;

function Damaged({ sessions }: { readonly sessions: readonly DamagedSession[] }) {
  if (sessions.length === 0) return null;
  return (
    <details class="damaged">
      <summary>{count(sessions.length, 'session')} cannot be read</summary>
      <ul>
        {sessions.slice(0, DAMAGED).map(({ sessionId, problem }) => (
          <li key={sessionId}>
            <b>
              <Text>{sessionId}</Text>
            </b>{' '}
            <Text>{problem}</Text>
          </li>
        ))}
        {sessions.length > DAMAGED && <li>… and {sessions.length - DAMAGED} more</li>}
      </ul>
    </details>
  );
}

function Head() {
  return (
    <div class="row head" aria-hidden="true">
      <span>Status</span>
      <span>Asked</span>
      <span>Tenant</span>
      <span>Started</span>
      <span class="n">Took</span>
      <span class="n">Turns</span>
      <span class="n">Tokens</span>
      <span class="n">Cost</span>
    </div>
  );
}

function Row({ row, chosen }: { readonly row: RunRow; readonly chosen: boolean }) {
  const link = linkTo('run', { session: row.sessionId, run: row.runId });
  const guards = row.verdicts.reduce((total, one) => total + one.count, 0);
  const marks = (
    <>
      {guards > 0 && (
        <span
          class="tag"
          title={row.verdicts.map(({ by, action, count: n }) => `${by}: ${action} × ${n}`).join('\n')}
        >
          {count(guards, 'guard act')}
        </span>
      )}
      {row.waiting > 0 && <span class="tag wait">{count(row.waiting, 'question')}</span>}
      {row.toolErrors > 0 && <span class="tag bad">{count(row.toolErrors, 'tool error')}</span>}
    </>
  );
  const took = duration((row.status === 'running' ? Date.now() : row.updatedAt) - row.startedAt);
  const settled = row.status === 'running' && Date.now() - row.updatedAt > 120_000 ? '–' : took;
  if (narrow.value)
    return (
      <a class="row card" href={link} aria-current={chosen ? 'true' : undefined}>
        <span class="asked">
          <Text>{row.input || '(no text)'}</Text>
        </span>
        <span class="facts">
          <Status row={row} /> {moment(row.startedAt)} · {settled} · {dollars(row.costUsd)} {marks}
        </span>
      </a>
    );
  return (
    <a class="row" href={link} aria-current={chosen ? 'true' : undefined}>
      <Status row={row} />
      <span class="asked">
        <span class="line">
          <Text>{row.input || '(no text)'}</Text>
        </span>
        {marks}
      </span>
      <span class="line muted">
        <Text>{row.tenant ?? '–'}</Text>
      </span>
      <span class="muted" title={exactly(row.startedAt)}>
        {moment(row.startedAt)}
      </span>
      <span class="n">{settled}</span>
      <span class="n">{row.turns}</span>
      <span class="n">{tokens(row.usage.totalTokens)}</span>
      <span class={row.costUsd === undefined ? 'n muted' : 'n'}>{dollars(row.costUsd)}</span>
    </a>
  );
}

function Filters() {
  const { query } = route.value;
  const [text, setText] = useState(query.text ?? '');
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  // Cleared elsewhere.
  useEffect(() => {
    if (!query.text) setText('');
  }, [query.text]);
  const set = (change: Record<string, string | undefined>) => setQuery({ ...route.value.query, ...change });
  const chosen = new Set((query.status ?? '').split(',').filter(Boolean));
  const toggle = (status: string) => {
    chosen.has(status) ? chosen.delete(status) : chosen.add(status);
    set({ status: [...chosen].join(',') });
  };
  const field = (name: string, label: string, unit: string) => (
    <label>
      <span>{label}</span>
      <span class="unit">
        <input
          type="number"
          min="0"
          step="any"
          value={query[name] ?? ''}
          onChange={(event) => set({ [name]: event.currentTarget.value })}
        />
        {unit}
      </span>
    </label>
  );
  return (
    <form class="filters" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      <input
        type="search"
        aria-label="Search runs"
        placeholder="Search messages, sessions, ends…"
        value={text}
        onInput={(event) => {
          const { value } = event.currentTarget;
          setText(value);
          clearTimeout(timer.current);
          timer.current = setTimeout(() => set({ text: value.trim() }), 250);
        }}
      />
      <fieldset class="chips">
        <legend class="unseen">Status</legend>
        {STATUSES.map((status) => (
          <button
            key={status}
            type="button"
            class="chip"
            aria-pressed={chosen.has(status)}
            onClick={() => toggle(status)}
          >
            {status === 'suspended' ? 'waiting' : status === 'error' ? 'failed' : status}
          </button>
        ))}
      </fieldset>
      <details class="further" open={FURTHER.some((name) => query[name])}>
        <summary>More filters</summary>
        <div>
          <label>
            <span>Tenant</span>
            <input
              type="text"
              value={query.tenant ?? ''}
              onChange={(event) => set({ tenant: event.currentTarget.value.trim() })}
            />
          </label>
          {field('minCostUsd', 'Cost at least', 'USD')}
          {field('minSeconds', 'Took at least', 's')}
          <label>
            <span>Guards</span>
            <select value={query.guard ?? ''} onChange={(event) => set({ guard: event.currentTarget.value })}>
              <option value="">whatever they said</option>
              <option value="any">some guard acted</option>
              {guardNames().map((name) => (
                <option key={name} value={name}>
                  {name} acted
                </option>
              ))}
            </select>
          </label>
          <label class="check">
            <input
              type="checkbox"
              checked={query.children === '1'}
              onChange={(event) => set({ children: event.currentTarget.checked ? '1' : undefined })}
            />
            <span>Sub-agents’ runs, too</span>
          </label>
          <button
            type="button"
            class="quiet"
            onClick={() => {
              setText('');
              setQuery({});
            }}
          >
            Clear all
          </button>
        </div>
      </details>
    </form>
  );
}

const FURTHER = ['tenant', 'minCostUsd', 'minSeconds', 'guard', 'children'];

function guardNames(): readonly string[] {
  return [...new Set(info.value?.agents.flatMap(({ middleware }) => middleware))];
}

function Nothing({ filtered }: { readonly filtered: boolean }) {
  if (filtered)
    return (
      <Empty title="No run fits">
        <p>Nothing in the store fits these filters.</p>
        <button type="button" onClick={() => setQuery({})}>
          Clear all filters
        </button>
      </Empty>
    );
  return (
    <Empty title="No runs yet">
      <p>
        Runs appear here as soon as they start. Try <code>allium run "Hello"</code> in the folder of your
        config, or drop an exported trace onto this page.
      </p>
    </Empty>
  );
}

/** Rows of the next page, without those that came in live meanwhile. */
function merged(before: readonly RunRow[], more: readonly RunRow[]): readonly RunRow[] {
  const known = new Set(before.map(keyOf));
  return [...before, ...more.filter((row) => !known.has(keyOf(row)))];
}

/** Rows that have gone on are replaced where they are; new ones come first. */
function updated(
  before: readonly RunRow[],
  changed: readonly RunRow[],
  query: Readonly<Record<string, string>>,
): readonly RunRow[] {
  const byKey = new Map(changed.map((row) => [keyOf(row), row]));
  const rows = before.flatMap((row) => {
    const found = byKey.get(keyOf(row));
    byKey.delete(keyOf(row));
    return found ? (fits(found, query) ? [found] : []) : [row];
  });
  const fresh = [...byKey.values()]
    .filter((row) => fits(row, query))
    .sort((a, b) => b.startedAt - a.startedAt);
  return fresh.length > 0 ? [...fresh, ...rows] : rows;
}

/**
 * Filters like the server, as far as a row shows it. Only the server searches text, so nothing new comes in
 * then.
 */
function fits(row: RunRow, query: Readonly<Record<string, string>>): boolean {
  const { status, tenant, minCostUsd, minSeconds, guard, text, children } = query;
  if (text) return row.input.toLowerCase().includes(text.toLowerCase());
  if (row.child && children !== '1') return false;
  if (status && !status.split(',').includes(row.status)) return false;
  if (tenant && row.tenant !== tenant) return false;
  if (minCostUsd && (row.costUsd ?? 0) < Number(minCostUsd)) return false;
  if (minSeconds && row.updatedAt - row.startedAt < Number(minSeconds) * 1000) return false;
  return !guard || row.verdicts.some(({ by }) => guard === 'any' || by === guard);
}

function useKeys(
  rows: readonly RunRow[],
  selected: number,
  select: (index: number) => void,
  open: (row: RunRow | undefined) => void,
): void {
  // Keys may come faster than the page is drawn.
  const at = useRef(selected);
  at.current = selected;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { target } = event;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (target instanceof HTMLElement && target.closest('input, textarea, select, button, summary')) return;
      const step = STEPS[event.key];
      if (step !== undefined) {
        at.current = Math.max(0, Math.min(rows.length - 1, at.current + step));
        select(at.current);
      } else if (event.key === 'Enter' && at.current >= 0 && !(target instanceof HTMLAnchorElement))
        open(rows[at.current]);
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [rows]);
}

const STEPS: Readonly<Record<string, number>> = {
  ...{ ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 },
  ...{ PageDown: 10, PageUp: -10, Home: -1e9, End: 1e9 },
};
