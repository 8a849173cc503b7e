/** The list of runs: newest first, filtered, and live. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { DamagedSession, RunRow } from '../../src/wire.js';
import { api } from './api.js';
import { count, dollars, duration, exactly, moment, tokens } from './format.js';
import { Empty, Loading, Problem, Status, Text } from './parts.js';
import { Filters } from './run-filters.js';
import { useKeys } from './run-keys.js';
import { keyOf, merged, updated } from './run-rows.js';
import { go, hearRuns, linkTo, narrow, route, setQuery } from './state.js';
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
  // A page may have no row that fits: load on until there is something to see.
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

/** How many damaged sessions are listed at most: nobody reads thousands. */
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
