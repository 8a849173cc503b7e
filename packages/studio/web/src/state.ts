/** What all screens share: where one is, what the server says about itself, and the theme. */
import { computed, signal } from '@preact/signals';
import type { RunRow, StudioInfo } from '../../src/wire.js';
import { watch } from './api.js';

export const info = signal<StudioInfo | undefined>(undefined);
export const failure = signal<string | undefined>(undefined);
export const connected = signal(true);
/** Questions that wait, as far as they are known. */
export const waiting = signal(0);
export const helping = signal(false);
export const notice = signal<string | undefined>(undefined);

let noticeTimer: ReturnType<typeof setTimeout> | undefined;
/** Says something for a few seconds. */
export function say(text: string): void {
  notice.value = text;
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => {
    notice.value = undefined;
  }, 6000);
}

export const hash = signal(location.hash);
addEventListener('hashchange', () => {
  hash.value = location.hash;
});

export interface Route {
  readonly screen: string;
  readonly query: Readonly<Record<string, string>>;
}

export const route = computed<Route>(() => {
  const [path = '', search = ''] = hash.value.replace(/^#\/?/, '').split('?', 2);
  return { screen: path || 'runs', query: Object.fromEntries(new URLSearchParams(search)) };
});

export function linkTo(screen: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value) params.set(key, value);
  const text = params.toString();
  return text === '' ? `#/${screen}` : `#/${screen}?${text}`;
}

export function go(screen: string, query?: Readonly<Record<string, string | undefined>>): void {
  location.hash = linkTo(screen, query);
}

/** Changes the query of this screen without a step in the history. */
export function setQuery(query: Readonly<Record<string, string | undefined>>): void {
  history.replaceState(undefined, '', linkTo(route.value.screen, query));
  hash.value = location.hash;
}

export type Theme = 'system' | 'light' | 'dark';
export const theme = signal<Theme>(readTheme());

function readTheme(): Theme {
  try {
    const kept = localStorage.getItem('theme');
    return kept === 'light' || kept === 'dark' ? kept : 'system';
  } catch {
    return 'system';
  }
}

export function setTheme(next: Theme): void {
  theme.value = next;
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem('theme', next);
  } catch {
    // Nothing can be stored here, so the next page follows the system again.
  }
}
setTheme(theme.value);

type Hears = { readonly hello?: () => void; readonly runs: (rows: readonly RunRow[]) => void };
const hearers = new Set<Hears>();
let started = false;

/** Hears of changed runs. One connection serves all screens. */
export function hearRuns(hearer: Hears): () => void {
  hearers.add(hearer);
  if (!started) {
    started = true;
    watch(
      () => {
        for (const one of hearers) one.hello?.();
      },
      (rows) => {
        for (const one of hearers) one.runs(rows);
      },
      (up) => {
        connected.value = up;
      },
    );
  }
  return () => hearers.delete(hearer);
}

const narrowQuery = matchMedia('(max-width: 720px)');
export const narrow = signal(narrowQuery.matches);
narrowQuery.addEventListener('change', () => {
  narrow.value = narrowQuery.matches;
});
