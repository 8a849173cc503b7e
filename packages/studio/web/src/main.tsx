/** The page: navigation, the screen that the address names, and keys that work everywhere. */
import { render } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { api } from './api.js';
import { Approvals } from './approvals.js';
import { Drop } from './drop.js';
import { Money } from './money.js';
import { Onion } from './onion.js';
import { Empty, Problem, Rings } from './parts.js';
import { Playground } from './playground.js';
import { RunScreen } from './run.js';
import { Runs } from './runs.js';
import {
  connected,
  failure,
  go,
  hearRuns,
  helping,
  info,
  linkTo,
  notice,
  route,
  setTheme,
  theme,
  waiting,
} from './state.js';
import './style.css';

const SCREENS = [
  { screen: 'runs', label: 'Runs', key: '1' },
  { screen: 'approvals', label: 'Approvals', key: '2' },
  { screen: 'onion', label: 'Onion', key: '3' },
  { screen: 'playground', label: 'Playground', key: '4' },
  { screen: 'money', label: 'Money', key: '5' },
] as const;

async function loadInfo(): Promise<void> {
  try {
    info.value = await api.info();
    failure.value = undefined;
  } catch (error) {
    failure.value = (error as Error).message;
  }
}

let counting: ReturnType<typeof setTimeout> | undefined;
/** Counts the open questions for the navigation, at most once a second. */
function countWaiting(): void {
  if (counting !== undefined) return;
  counting = setTimeout(async () => {
    counting = undefined;
    const page = await api.approvals().catch(() => undefined);
    if (page) waiting.value = page.questions.filter((one) => one.answered === undefined).length;
  }, 300);
}

function App() {
  useEffect(() => {
    void loadInfo();
    countWaiting();
    const stop = hearRuns({ hello: countWaiting, runs: countWaiting });
    addEventListener('keydown', onKey);
    return () => {
      stop();
      removeEventListener('keydown', onKey);
    };
  }, []);
  const { screen, query } = route.value;
  const tabs = useRef<HTMLElement>(null);
  useEffect(() => {
    tabs.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [screen]);
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to content
      </button>
      <header class="top">
        <a class="brand" href={linkTo('runs')}>
          <Rings />
          <b>Allium</b> Studio
        </a>
        <nav aria-label="Screens" ref={tabs}>
          {SCREENS.map((one) => (
            <a
              key={one.screen}
              href={linkTo(one.screen)}
              aria-current={isAt(screen, one.screen) ? 'page' : undefined}
              title={`${one.label} (${one.key})`}
            >
              {one.label}
              {one.screen === 'approvals' && waiting.value > 0 && <em>{waiting.value}</em>}
            </a>
          ))}
        </nav>
        <div class="about">
          {info.value?.demo && <span class="tag">demo</span>}
          {info.value && !info.value.allowAnswers && (
            <span class="tag" title="Start with --allow-answers to answer questions and to play.">
              read-only
            </span>
          )}
          {!connected.value && <span class="tag bad">not connected</span>}
          <button
            type="button"
            class="quiet"
            onClick={nextTheme}
            aria-label={`Theme: ${theme.value}. Change it.`}
            title="Theme (t)"
          >
            {theme.value === 'system' ? 'Auto' : theme.value === 'dark' ? 'Dark' : 'Light'}
          </button>
          <button
            type="button"
            class="quiet"
            aria-label="Keys"
            title="Keys (?)"
            onClick={() => {
              helping.value = true;
            }}
          >
            ?
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {failure.value ? (
          <Problem error={failure.value} retry={loadInfo} />
        ) : (
          <Screen screen={screen} query={query} />
        )}
      </main>
      {helping.value && <Help />}
      <div class="notice" role="status" aria-live="polite">
        {notice.value && <p>{notice.value}</p>}
      </div>
      <Drop />
    </>
  );
}

function Screen({
  screen,
  query,
}: {
  readonly screen: string;
  readonly query: Readonly<Record<string, string>>;
}) {
  if (screen === 'runs') return <Runs />;
  if (screen === 'approvals') return <Approvals />;
  if (screen === 'onion') return <Onion />;
  if (screen === 'playground') return <Playground />;
  if (screen === 'money') return <Money />;
  if (screen === 'run')
    return (
      <RunScreen key={`${query.session} ${query.run}`} session={query.session ?? ''} run={query.run ?? ''} />
    );
  return (
    <Empty title="There is no such screen">
      <a href={linkTo('runs')}>To the runs</a>
    </Empty>
  );
}

function isAt(screen: string, one: string): boolean {
  return screen === one || (screen === 'run' && one === 'runs');
}

function nextTheme(): void {
  setTheme(theme.value === 'system' ? 'dark' : theme.value === 'dark' ? 'light' : 'system');
}

function onKey(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === 'Escape' && helping.value) {
    helping.value = false;
    return;
  }
  const { target } = event;
  if (target instanceof HTMLElement && target.closest('input, textarea, select, [contenteditable]')) {
    if (event.key === 'Escape') target.blur();
    return;
  }
  if (event.key === '?') helping.value = !helping.value;
  else if (event.key === 't') nextTheme();
  else if (event.key === 'Escape' && route.value.screen === 'run')
    history.length > 1 ? history.back() : go('runs');
  else if (event.key === '/') {
    const field = document.querySelector<HTMLInputElement>('input[type=search]');
    if (!field) return;
    field.focus();
  } else {
    const found = SCREENS.find(({ key }) => key === event.key);
    if (!found) return;
    go(found.screen);
  }
  event.preventDefault();
}

const KEYS: readonly (readonly [string, string])[] = [
  ['1 – 5', 'screens'],
  ['/', 'search'],
  ['↓ ↑ or j k', 'next, previous'],
  ['Enter', 'open'],
  ['[ ]', 'previous, next model call of a run'],
  ['Esc', 'back'],
  ['t', 'theme'],
  ['?', 'these keys'],
];

function Help() {
  return (
    <dialog class="help" open aria-label="Keys">
      <h2>Keys</h2>
      <dl>
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <button
        type="button"
        onClick={() => {
          helping.value = false;
        }}
      >
        Close
      </button>
    </dialog>
  );
}

render(<App />, document.getElementById('app')!);
