/** The lines of an audit log: each seals itself and names the one before it. */
import { hash } from 'node:crypto';

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
export type Seal = (body: string) => string;

/** Seals with this key. An HMAC object per line costs more than the hashing, so both halves are hashed in one go. */
export function sealWith(key: AuditKey | undefined): Seal {
  if (key === undefined) return (body) => hash('sha256', body, 'hex');
  const padded = Buffer.alloc(BLOCK);
  const bytes = Buffer.from(key as string);
  (bytes.length > BLOCK ? hash('sha256', bytes, 'buffer') : bytes).copy(padded);
  const inner = Buffer.alloc(BLOCK + ROOM);
  const room = inner.subarray(BLOCK);
  const outer = Buffer.alloc(BLOCK + 32);
  for (const [i, byte] of padded.entries()) {
    inner[i] = byte ^ 0x36;
    outer[i] = byte ^ 0x5c;
  }
  return (body) => {
    // A character has three bytes at most.
    const long = 3 * body.length > ROOM;
    const text = long
      ? Buffer.concat([inner.subarray(0, BLOCK), Buffer.from(body)])
      : inner.subarray(0, BLOCK + encoder.encodeInto(body, room).written);
    outer.write(hash('sha256', text, 'binary'), BLOCK, 'binary');
    return hash('sha256', outer, 'hex');
  };
}

const encoder = new TextEncoder();
/** Bytes that SHA-256 takes at a time. */
const BLOCK = 64;
/** Bytes of a line for which there is room at hand. */
const ROOM = 8192;

/** The line as it is written. The seal covers the exact text before it. */
export function sealed(body: string, seal: Seal): { readonly text: string; readonly hash: string } {
  const made = seal(body);
  const end = `,"hash":"${made}"}`;
  // Sealing has flattened the body into one string. Lines are kept, and many pieces would be many objects.
  return { text: body.slice(0, -1) + end, hash: made };
}

const WRITTEN = /^(.*),"hash":"([0-9a-f]{64})"}$/s;

/** Parses a written line; undefined if it isn't one. */
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
