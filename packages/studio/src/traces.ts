/** What the journal says about what middleware and guards did. */
import type { Entry } from 'allium';
import type { VerdictCount } from './wire.js';

const NONE: readonly VerdictCount[] = [];

/** What guards decided, as far as this entry tells. */
export function verdictsIn(entry: Entry): readonly VerdictCount[] {
  if (entry.type === 'message' && entry.feedback)
    return [{ by: sourceOf(entry.message.metadata) ?? 'guard', action: 'feedback', count: 1 }];
  if (entry.type === 'trace')
    return entry.records.flatMap(({ verdict }) =>
      // Verdicts about calls, and what ended the run, have entries of their own.
      verdict && verdict.action !== 'stop' && verdict.action !== 'ask' && verdict.point !== 'tool-args'
        ? [{ by: verdict.guard, action: verdict.action, count: 1 }]
        : [],
    );
  if (entry.type !== 'verdict') return NONE;
  const { deny, ask } = (entry.verdict ?? {}) as Record<'deny' | 'ask', { by?: unknown } | undefined>;
  return [
    ...(deny ? [{ by: nameOf(deny.by), action: 'block', count: 1 }] : []),
    ...(ask ? [{ by: nameOf(ask.by), action: 'ask', count: 1 }] : []),
  ];
}

/** The middleware that wrote a message, if it was one. */
export function sourceOf(metadata: Readonly<Record<string, unknown>> | undefined): string | undefined {
  if (metadata?.synthetic !== true) return undefined;
  return typeof metadata.source === 'string' ? metadata.source : 'middleware';
}

/** The session of the sub-agent that ran in a call, by the result of that call. */
export function agentOf(entry: Entry): string | undefined {
  if (entry.type !== 'tool_finished') return undefined;
  const id = (entry.message.details as { agentId?: unknown } | undefined)?.agentId;
  return typeof id === 'string' ? id : undefined;
}

function nameOf(by: unknown): string {
  return typeof by === 'string' ? by : 'guard';
}
