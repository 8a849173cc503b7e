/** How the laws look at an outcome. */
import type { Entry, InboxItem, ListOptions, SessionInfo, Store } from '../../index.js';
import { state } from './samples.js';

export async function roundTrip(store: Store, sessionId: string, value: unknown): Promise<void> {
  await store.append(sessionId, 0, [state(value)]);
  equal(valueIn((await store.read(sessionId, 1))[0]), value, 'a value read back');
}

export function valueIn(entry: Entry | undefined): unknown {
  return entry?.type === 'state' ? entry.value : undefined;
}

export function texts(entries: readonly Entry[]): string[] {
  return entries.map((entry) => (entry.type === 'message' ? entry.message.id : entry.type));
}

export function reasons(items: readonly { readonly item: InboxItem }[]): string[] {
  return items.map(({ item }) => (item.type === 'cancel' ? (item.reason ?? '') : item.type));
}

export async function info(store: Store, tenant: string, sessionId: string): Promise<SessionInfo> {
  const found = (await sessionsOf(store, { tenant })).find((session) => session.sessionId === sessionId);
  if (!found) throw new Error(`Expected session ${JSON.stringify(sessionId)} in the list of its tenant.`);
  return found;
}

export async function sessionsOf(
  store: Store,
  { limit = 1_000, tenant, since }: Omit<ListOptions, 'cursor'>,
): Promise<SessionInfo[]> {
  const sessions: SessionInfo[] = [];
  const cursors = new Set<string>();
  for (let cursor: string | undefined; ; ) {
    const page = await store.list({
      limit,
      ...(tenant !== undefined && { tenant }),
      ...(since !== undefined && { since }),
      ...(cursor !== undefined && { cursor }),
    });
    sessions.push(...page.sessions);
    // Pages that go round in a circle break one law and must not hang the others.
    if (page.next === undefined || cursors.has(page.next)) return sessions;
    cursor = page.next;
    cursors.add(cursor);
  }
}

type Attempt<T> = { readonly ok: boolean; readonly value?: T; readonly error?: unknown };

export async function settled<T>(attempt: () => T | Promise<T>): Promise<Attempt<T>> {
  try {
    return { ok: true, value: await attempt() };
  } catch (error) {
    return { ok: false, error };
  }
}

export async function conflicts(attempt: () => unknown, what: string): Promise<void> {
  const { ok, error } = await settled(attempt);
  equal(ok ? 'success' : codeOf(error), 'SESSION_CONFLICT', `the outcome of ${what}`);
}

export function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : String(error);
}

/** Changes everything in `value` that can be changed. */
export function meddle(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const key of Object.keys(value)) {
    meddle((value as Record<string, unknown>)[key]);
    Reflect.set(value, key, 'meddled');
  }
}

export function tick(): Promise<true> {
  return new Promise((resolve) => setImmediate(resolve, true));
}

export function equal(actual: unknown, expected: unknown, what: string): void {
  const path = difference(actual, expected, '');
  if (path === undefined) return;
  throw new Error(
    `Expected ${what} to be ${brief(expected)}, got ${brief(actual)}${path === '' ? '' : ` (they differ at ${path})`}.`,
  );
}

/** Where two JSON values differ. A property that is undefined counts as absent, as it does in JSON. */
function difference(a: unknown, b: unknown, path: string): string | undefined {
  if (Object.is(a, b)) return undefined;
  if (
    typeof a !== 'object' ||
    typeof b !== 'object' ||
    a === null ||
    b === null ||
    Array.isArray(a) !== Array.isArray(b)
  )
    return path;
  if (Array.isArray(a) && a.length !== (b as unknown[]).length) return `${path}.length`;
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const inner = difference(
      (a as Record<string, unknown>)[key],
      (b as Record<string, unknown>)[key],
      `${path}[${JSON.stringify(key)}]`,
    );
    if (inner !== undefined) return inner;
  }
  return undefined;
}

function brief(value: unknown): string {
  const json =
    JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? `${inner}n` : inner)) ??
    String(value);
  return json.length > 200 ? `${json.slice(0, 200)}… (${json.length} characters)` : json;
}
