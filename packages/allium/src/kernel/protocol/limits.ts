/** The limits of a run. */

export interface Limits {
  /** Model calls of the loop. @default 100 */
  readonly turns?: number;
  /** How deep sub-agents may nest. @default 8 */
  readonly depth?: number;
  /** Tool calls that may run. Further ones get a result that says so, and the run stops. */
  readonly toolCalls?: number;
  /** Input and output tokens, including sub-agents and middleware's own calls. */
  readonly tokens?: number;
  /** US dollars, counted like tokens. Every model needs a known price, or the run fails with `PRICE_UNKNOWN`. */
  readonly costUsd?: number;
  /** Active milliseconds. Waiting for the consumer or a human doesn't count. */
  readonly timeoutMs?: number;
  /** Milliseconds a model may send nothing. After that the call fails with `MODEL_TIMEOUT`, which is worth a retry. Waiting for the consumer doesn't count. `'none'` for no limit. @default 120000 */
  readonly modelIdleMs?: number | 'none';
  /** Milliseconds one call of a model may take, however much it sends. `'none'` for no limit. @default 600000 */
  readonly modelMs?: number | 'none';
  /** How deep the arguments of a call may be nested, up to 1000. A call with deeper ones gets an error result. @default 100 */
  readonly argsDepth?: number;
  /** How long the arguments of a call may be, in characters of JSON. A call with longer ones gets an error result. @default 4000000 */
  readonly argsChars?: number;
}

/** Limits as they are journaled. JSON has no infinity, so null means no limit. */
export type StoredLimits = Readonly<Record<string, number | null>>;

export function limitsToJson(limits: Limits): StoredLimits {
  const given = Object.entries(limits).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, Number.isFinite(value) ? value : null]));
}

export function limitsFromJson(stored: StoredLimits): Limits {
  const all = Object.entries(stored);
  return Object.fromEntries(all.map(([name, value]) => [name, value ?? Number.POSITIVE_INFINITY]));
}

/** Limits over all runs of a session. */
export type SessionLimits = Pick<Limits, 'turns' | 'toolCalls' | 'tokens' | 'costUsd'>;
