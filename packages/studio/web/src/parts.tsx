/** Small pieces that screens are made of. Every text that comes from a trace goes through `Text`. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { RowStatus, RunRow } from '../../src/wire.js';
import { api } from './api.js';
import { count, shown } from './format.js';

/** Text of a trace, as text. */
export function Text({ children }: { readonly children: string | undefined }) {
  return <>{shown(children ?? '')}</>;
}

const LABELS: Readonly<Record<string, string>> = {
  running: 'running',
  done: 'done',
  stopped: 'stopped',
  suspended: 'waiting',
  error: 'failed',
  aborted: 'aborted',
};

export function statusLabel({ status, updatedAt }: Pick<RunRow, 'status' | 'updatedAt'>): string {
  // Nothing tells whether its process still runs. After two silent minutes it probably does not.
  if (status === 'running' && Date.now() - updatedAt > 120_000) return 'unfinished';
  return LABELS[status] ?? status;
}

export function Status({ row }: { readonly row: Pick<RunRow, 'status' | 'updatedAt' | 'stop'> }) {
  const label = statusLabel(row);
  const why =
    row.stop?.reason && row.stop.reason !== 'final' ? row.stop.reason.replaceAll('_', ' ') : undefined;
  return (
    <span class={`status ${row.status} ${label}`} title={row.stop?.message && shown(row.stop.message)}>
      <i aria-hidden="true" />
      {label}
      {why && why !== label && row.status === 'stopped' ? <small> {why}</small> : null}
    </span>
  );
}

export const STATUSES: readonly RowStatus[] = ['running', 'suspended', 'done', 'stopped', 'error', 'aborted'];

export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <Rings />
      <h2>{title}</h2>
      <div>{children}</div>
    </div>
  );
}

export function Rings() {
  return (
    <svg class="rings" viewBox="0 0 32 32" aria-hidden="true">
      <circle cx="16" cy="16" r="13" />
      <circle cx="16" cy="17.5" r="8.5" />
      <circle cx="16" cy="19" r="4" />
    </svg>
  );
}

export function Loading({ what }: { readonly what: string }) {
  return (
    <div class="loading" role="status">
      <i aria-hidden="true" />
      {what}
    </div>
  );
}

export function Problem({
  error,
  retry,
  children,
}: {
  readonly error: string;
  readonly retry?: () => void;
  /** Where else to go. */
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="problem" role="alert">
      <p>
        <Text>{error}</Text>
      </p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
      {children}
    </div>
  );
}

/** The most characters that are put into the page at once. */
const MOST = 100_000;

/** A text that may be cut: the rest is fetched when somebody asks for it. */
export function LongText({
  text,
  cut,
  session,
  id,
  part,
  code = false,
}: {
  readonly text: string;
  readonly cut?: number | undefined;
  readonly session?: string;
  readonly id?: string;
  /** Reads the text out of the whole message. */
  readonly part?: (message: Record<string, unknown>) => string;
  readonly code?: boolean;
}) {
  const [whole, setWhole] = useState<string>();
  const [error, setError] = useState<string>();
  const load = async () => {
    try {
      setWhole((part ?? textIn)(await api.message(session!, id!)));
    } catch (problem) {
      setError(String((problem as Error).message));
    }
  };
  const body = whole ?? text;
  return (
    <div class={code ? 'long code' : 'long'}>
      <Text>{body.length > MOST ? body.slice(0, MOST) : body}</Text>
      {cut !== undefined && whole === undefined && (
        <p class="more">
          {session && id ? (
            <button type="button" class="quiet" onClick={load}>
              Show all {count(cut, 'character')}
            </button>
          ) : (
            `cut: ${count(cut, 'character')} in all`
          )}
        </p>
      )}
      {whole !== undefined && whole.length > MOST && (
        <p class="more">
          {count(MOST, 'character')} of {count(whole.length, 'character')} are shown. The export has all of
          it.
        </p>
      )}
      {error && <p class="more bad">{error}</p>}
    </div>
  );
}

function textIn(message: Record<string, unknown>): string {
  const content = Array.isArray(message.content)
    ? (message.content as { type: string; text?: string }[])
    : [];
  return content.map((part) => (part.type === 'text' ? (part.text ?? '') : '')).join('');
}

export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
