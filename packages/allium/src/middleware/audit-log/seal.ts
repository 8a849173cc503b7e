/** The lines of an audit log: each seals itself and names the one before it. */
import { createHash, createHmac } from 'node:crypto';

export type AuditKey = string | Uint8Array;

/** Where the chain of a session ends. */
export interface AuditHead {
  readonly session: string;
  /** Number of the last line, from 1; 0 when there is none. */
  readonly seq: number;
  /** Seal of the last line. */
  readonly hash: string;
}

/** What every line says. */
export interface AuditLine {
  readonly v: 1;
  readonly session: string;
  readonly run: string;
  readonly seq: number;
  /** ISO 8601. */
  readonly time: string;
  readonly type: 'run' | 'model' | 'tool';
  /** Seal of the line before; empty in the first. */
  readonly prev: string;
  readonly [field: string]: unknown;
}

/** The seal of a text: keyed, or a plain hash when there is no key. */
export function sealOf(body: string, key: AuditKey | undefined): string {
  return (key === undefined ? createHash('sha256') : createHmac('sha256', key)).update(body).digest('hex');
}

/** The line as it is written. The seal covers the exact text before it. */
export function sealed(
  line: AuditLine,
  key: AuditKey | undefined,
): { readonly text: string; readonly hash: string } {
  const body = JSON.stringify(line);
  const hash = sealOf(body, key);
  return { text: `${body.slice(0, -1)},"hash":"${hash}"}`, hash };
}

const WRITTEN = /^(.*),"hash":"([0-9a-f]{64})"}$/s;

/** A written line taken apart; undefined when it is no such line at all. */
export function opened(
  text: string,
): { readonly body: string; readonly hash: string; readonly line: AuditLine } | undefined {
  const [, head, hash] = WRITTEN.exec(text) ?? [];
  if (head === undefined || hash === undefined) return undefined;
  const body = `${head}}`;
  try {
    return { body, hash, line: JSON.parse(body) as AuditLine };
  } catch {
    return undefined;
  }
}
