/** Lists sessions, a page at a time. */
import { checkStorable, type ListOptions, listCursor, listQuery, type SessionInfo } from 'allium/stores/kit';

export interface Page {
  readonly sessions: readonly SessionInfo[];
  readonly next?: string;
}

/** The statement for a page, and what its rows come to. */
export function listing(s: string, options: ListOptions) {
  const { tenant, since, limit, after } = listQuery(options);
  const values: unknown[] = [];
  const value = (given: unknown): string => `$${values.push(given)}`;
  const where = ['seq > 0'];
  if (tenant !== undefined) checkStorable('tenant', tenant);
  if (tenant !== undefined) where.push(`tenant = ${value(tenant)}`);
  if (since !== undefined) where.push(`updated_at >= ${value(since)}`);
  if (after !== undefined) {
    const at = value(after.updatedAt);
    // The first half lets the index start there: with an OR alone, every page before it would be read again.
    where.push(`updated_at <= ${at} AND (updated_at < ${at} OR id > ${value(after.sessionId)})`);
  }
  const text = `SELECT id, tenant, seq, created_at, updated_at FROM ${s}.sessions
       WHERE ${where.join(' AND ')} ORDER BY updated_at DESC, id LIMIT ${value(limit + 1)}`;
  const pageOf = (rows: readonly object[]): Page => {
    const sessions = (rows as readonly SessionRow[]).slice(0, limit).map((row) => ({
      sessionId: row.id,
      ...(row.tenant !== null && { tenant: row.tenant }),
      seq: row.seq,
      createdAt: row.created_at,
      updatedAt: row.updated_at,
    }));
    return rows.length > limit ? { sessions, next: listCursor(sessions[limit - 1]!) } : { sessions };
  };
  return { text, values, pageOf };
}

interface SessionRow {
  readonly id: string;
  readonly tenant: string | null;
  readonly seq: number;
  readonly created_at: number;
  readonly updated_at: number;
}
