/** The filters above the list of runs. They are the query of the page's address. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { STATUSES } from './parts.js';
import { info, route, setQuery } from './state.js';

export function Filters() {
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
