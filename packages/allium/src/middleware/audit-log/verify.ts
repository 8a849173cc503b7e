/** Checks an audit log against its head: which lines are missing, edited, moved or cut off. */
import { invalidOption } from '../../kit/index.js';
import { type AuditHead, type AuditKey, type AuditLine, opened, sealWith } from './seal.js';

export interface AuditProblem {
  /** `cut-off`: missing at the end. `moved`: not where it was written, or there twice. */
  readonly kind: 'missing' | 'edited' | 'moved' | 'cut-off';
  /** Number of the line in the chain of the session, where it is known. */
  readonly seq?: number;
  /** Number of the line in the log, from 1, where it is there. */
  readonly line?: number;
}

export interface AuditReport {
  /** There are no problems. */
  readonly ok: boolean;
  readonly problems: readonly AuditProblem[];
  /** Lines of the chain that are whole. */
  readonly verified: number;
  /** Whole lines that the head does not reach: written before a crash kept the head from being stored. */
  readonly unanchored: number;
}

/** A line of the session with a correct seal. */
interface Whole {
  readonly seq: number;
  readonly hash: string;
  readonly prev: string;
  /** Its place in the log. */
  readonly at: number;
}

/**
 * Says what is wrong with the log of a session. Lines of other sessions may stand between its own.
 *
 * @param log The whole log, or its lines.
 * @param head From `auditHead()`: out of the journal, not out of the log.
 * @param key The one the log was written with.
 */
export function verifyAudit(log: string | Iterable<string>, head: AuditHead, key?: AuditKey): AuditReport {
  if (
    typeof head !== 'object' ||
    head === null ||
    !Number.isInteger(head.seq) ||
    typeof head.session !== 'string'
  )
    throw invalidOption('head', 'an object with session, seq and hash', head);
  const { whole, edited, problems } = read(log, head, key);
  const chain = follow(whole, edited, head, problems);
  const onChain = new Set(chain);
  checkPlaces(whole, onChain, problems);
  const unanchored = new Set(
    [...whole.values()]
      .flat()
      .filter((one) => !onChain.has(one))
      .map(({ hash }) => hash),
  );
  for (const { hash } of chain) unanchored.delete(hash);
  problems.sort((a, b) => (a.seq ?? 0) - (b.seq ?? 0) || (a.line ?? 0) - (b.line ?? 0));
  return { ok: problems.length === 0, problems, verified: chain.length, unanchored: unanchored.size };
}

interface ReadLog {
  readonly whole: Map<number, Whole[]>;
  /** Numbers that edited lines claim. */
  readonly edited: ReadonlySet<number>;
  readonly problems: AuditProblem[];
}

function read(log: string | Iterable<string>, { session }: AuditHead, key: AuditKey | undefined): ReadLog {
  const whole = new Map<number, Whole[]>();
  const edited = new Set<number>();
  const problems: AuditProblem[] = [];
  const seal = sealWith(key);
  let at = 0;
  for (const text of typeof log === 'string' ? log.split('\n') : log) {
    at++;
    if (text.trim() === '') continue;
    const found = opened(text.replace(/\r?\n?$/, ''));
    const { seq, session: of, prev } = (found?.line ?? {}) as Partial<AuditLine>;
    if (found && of === session && Number.isInteger(seq) && seal(found.body) === found.hash) {
      const same = whole.get(seq!) ?? [];
      same.push({ seq: seq!, hash: found.hash, prev: String(prev), at });
      whole.set(seq!, same);
      continue;
    }
    // A line that somebody else wrote into the same log with another key.
    if (found && typeof of === 'string' && of !== session) continue;
    if (Number.isInteger(seq)) edited.add(seq!);
    problems.push({ kind: 'edited', ...(Number.isInteger(seq) && { seq: seq! }), line: at });
  }
  return { whole, edited, problems };
}

/** Goes back from the head, from line to line. */
function follow(
  whole: ReadonlyMap<number, readonly Whole[]>,
  edited: ReadonlySet<number>,
  head: AuditHead,
  problems: AuditProblem[],
): readonly Whole[] {
  const chain: Whole[] = [];
  const known = [...whole.keys(), ...edited].filter((seq) => seq <= head.seq);
  const last = Math.max(0, ...known);
  let wanted: string | undefined = head.hash;
  for (let seq = head.seq; seq > 0; seq--) {
    const candidates: readonly Whole[] = whole.get(seq) ?? [];
    const line: Whole | undefined =
      wanted === undefined ? candidates.at(-1) : candidates.find(({ hash }) => hash === wanted);
    wanted = line?.prev;
    if (line) chain.push(line);
    else if (candidates.length > 0) problems.push({ kind: 'edited', seq, line: candidates.at(-1)!.at });
    else if (!edited.has(seq)) problems.push({ kind: seq > last ? 'cut-off' : 'missing', seq });
    if (seq === 1 && line && line.prev !== '') problems.push({ kind: 'edited', seq, line: line.at });
  }
  return chain.reverse();
}

/** Lines stand in the order of their numbers, each once. */
function checkPlaces(
  whole: ReadonlyMap<number, readonly Whole[]>,
  onChain: ReadonlySet<Whole>,
  problems: AuditProblem[],
): void {
  let furthest = 0;
  for (const one of onChain) {
    if (one.at < furthest) problems.push({ kind: 'moved', seq: one.seq, line: one.at });
    else furthest = one.at;
    for (const copy of whole.get(one.seq)!)
      if (copy !== one && copy.hash === one.hash)
        problems.push({ kind: 'moved', seq: one.seq, line: copy.at });
  }
}
