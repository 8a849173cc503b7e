/** What holds for any two middleware, in any order and any situation. */
import { type AgentEvent, type Message, RunError, type RunResult, textOf, toolCallsOf } from 'allium';
import type { Ended, Observed } from './bench.js';
import type { Member } from './box.js';
import { answerTo, CALLS, FINAL, type Situation } from './conversation.js';

export interface PairLaw {
  readonly law: string;
  /** What is wrong; nothing when the law holds. */
  readonly breach: (observed: Observed, pair: readonly Member[]) => string | undefined;
}

export const LAWS: readonly PairLaw[] = [
  { law: 'a control signal ends the run as what it is', breach: signalStatus },
  { law: 'nothing is called again after a control signal', breach: signalCalls },
  { law: 'a control signal is no failure to anybody', breach: signalEvents },
  { law: 'an abort needs no time', breach: abortAtOnce },
  { law: 'every call is answered once, in order', breach: perRun(callsAnswered) },
  { law: 'the history is valid', breach: perRun(historyValid) },
  { law: 'requests are valid', breach: requestsValid },
  { law: 'deltas since the last reset are the message', breach: perRun(deltasAreMessage) },
  { law: 'starts and ends balance', breach: perRun(balance) },
  {
    law: 'no timer is left',
    breach: ({ timers }) => (timers > 0 ? `${timers} timers are left.` : undefined),
  },
  { law: 'errors keep their identity', breach: errorIdentity },
  { law: 'errors of tools keep their identity', breach: toolErrorIdentity },
  { law: 'what goes well ends well', breach: goesWell },
  { law: 'the next run is as if nothing had happened', breach: secondRun },
];

const SIGNALS: Partial<Record<Situation['outcome'], RunResult['status']>> = {
  StopRun: 'stopped',
  suspension: 'suspended',
  abort: 'aborted',
};

function signalStatus({ situation, first }: Observed): string | undefined {
  const wanted = SIGNALS[situation.outcome];
  const { status, stop, pending } = first.result;
  if (wanted === undefined) return undefined;
  if (status !== wanted) return `Expected the run to end as ${wanted}, got ${ending(first)}.`;
  if (wanted === 'stopped' && !(stop.reason === 'stopped' && stop.message?.endsWith('stops')))
    return `Expected the stop of the situation, got ${JSON.stringify(stop)}.`;
  if (wanted === 'suspended' && pending.length !== 1) return `Expected one question, got ${pending.length}.`;
  return undefined;
}

function signalCalls({ situation, seen, callsAtSignal }: Observed): string | undefined {
  if (SIGNALS[situation.outcome] === undefined) return undefined;
  // A tool gives its signal in its first execution, after the first model call.
  const { model, acts } = callsAtSignal ?? { model: 1, acts: 1 };
  if (seen.modelCalls !== model) return `The model was called ${seen.modelCalls - model} times more.`;
  if (seen.acts !== acts) return `The tool was run ${seen.acts - acts} times more.`;
  return undefined;
}

/** Events in which somebody says that a call has failed. */
const COMPLAINTS = ['retry', 'fallback', 'circuit-breaker'];

function signalEvents({ situation, first }: Observed): string | undefined {
  if (SIGNALS[situation.outcome] === undefined || situation.at === 'wait') return undefined;
  const found = first.events.find((event) => event.type === 'custom' && COMPLAINTS.includes(event.name));
  return found && `Somebody took it for one: ${JSON.stringify(found)}.`;
}

function abortAtOnce({ endedAtOnce }: Observed): string | undefined {
  return endedAtOnce === false ? 'The run went on until time had passed.' : undefined;
}

/** Tries every run of an observation. */
function perRun(look: (run: Ended) => string | undefined): PairLaw['breach'] {
  return ({ first, resumed, second }) => {
    for (const [name, run] of Object.entries({ first, resumed, second })) {
      const problem = run && look(run);
      if (problem) return `In the ${name} run: ${problem}`;
    }
    return undefined;
  };
}

function callsAnswered({ history, result }: Ended): string | undefined {
  if (result.status === 'suspended') return undefined;
  for (const [at, message] of history.entries()) {
    if (message.role !== 'assistant') continue;
    const calls = toolCallsOf(message).map(({ id }) => id);
    const answers = history
      .slice(at + 1, at + 1 + calls.length)
      .map((one) => (one.role === 'tool' ? one.toolCallId : one.role));
    if (JSON.stringify(calls) !== JSON.stringify(answers))
      return `calls ${calls.join()} are followed by ${answers.join()}.`;
  }
  return undefined;
}

function historyValid({ history, result }: Ended): string | undefined {
  const ids = history.map(({ id }) => id);
  if (new Set(ids).size !== ids.length) return `ids repeat: ${ids.join()}.`;
  const added = result.messages.map(({ id }) => id);
  if (!added.every((id) => ids.includes(id))) return 'the result has messages that the history lacks.';
  return valid(history, result.status === 'suspended');
}

function requestsValid({ seen }: Observed): string | undefined {
  for (const { messages } of seen.requests) {
    const problem = valid(messages, false);
    if (problem) return `A request is not: ${problem}`;
  }
  return undefined;
}

/** Begins with the user, and has no result without its call. */
function valid(messages: readonly Message[], open: boolean): string | undefined {
  if (messages[0]?.role !== 'user') return `it begins with ${messages[0]?.role ?? 'nothing'}.`;
  let expected: string[] = [];
  for (const message of messages) {
    if (message.role === 'tool') {
      if (!expected.includes(message.toolCallId)) return `the result ${message.toolCallId} has no call.`;
      expected = expected.filter((id) => id !== message.toolCallId);
      continue;
    }
    if (expected.length > 0) return `${message.role} comes before the results of ${expected.join()}.`;
    if (message.role === 'assistant') expected = toolCallsOf(message).map(({ id }) => id);
  }
  return expected.length > 0 && !open ? `${expected.join()} have no result.` : undefined;
}

function deltasAreMessage({ events }: Ended): string | undefined {
  const shown = new Map<string, string>();
  for (const event of events) {
    if (event.type === 'message_start' && event.role === 'assistant') shown.set(event.messageId, '');
    if (event.type === 'message_reset') shown.set(event.messageId, '');
    if (event.type === 'message_update') {
      const { delta } = event;
      const piece = delta.type === 'tool-call' ? `${delta.arguments}` : delta.text;
      shown.set(event.messageId, shown.get(event.messageId)! + piece);
    }
    if (event.type !== 'message_end' || !shown.has(event.messageId)) continue;
    const final = event.message ? written(event.message) : '';
    if (shown.get(event.messageId) !== final)
      return `${JSON.stringify(shown.get(event.messageId))} was shown of ${JSON.stringify(final)}.`;
  }
  return undefined;
}

function written({ content }: Pick<Message, 'content'>): string {
  return content
    .map((part) => ('arguments' in part ? part.arguments : 'text' in part ? part.text : ''))
    .join('');
}

const PAIRS = [
  ['agent_start', 'agent_end'],
  ['turn_start', 'turn_end'],
  ['message_start', 'message_end'],
  ['tool_execution_start', 'tool_execution_end'],
] as const;

function balance({ events }: Ended): string | undefined {
  for (const [start, end] of PAIRS) {
    const open = new Set<string>();
    const waiting = new Set<string>();
    const first = events[0];
    const last = events.at(-1);
    // A call that somebody is asked about starts once and ends once, though a resume may lie between.
    const resumed = first?.type === 'agent_start' && first.resumed && end === 'tool_execution_end';
    const suspended = last?.type === 'agent_end' && last.result.pending.length > 0;
    for (const event of events) {
      const key = keyOf(event);
      if (event.type === 'tool_execution_waiting') waiting.add(key);
      if (event.type === start) {
        if (open.has(key)) return `${start} of ${key} comes twice.`;
        open.add(key);
      }
      if (event.type === end && !open.delete(key) && !resumed) return `${end} of ${key} has no start.`;
    }
    const left = [...open].filter((key) => !(suspended && waiting.has(key)));
    if (left.length > 0) return `${start} of ${left.join()} has no end.`;
  }
  if (events.at(-1)?.type !== 'agent_end') return `the last event is ${events.at(-1)?.type}.`;
  return undefined;
}

function keyOf(event: AgentEvent): string {
  if ('toolCall' in event) return event.toolCall.id;
  if ('messageId' in event) return event.messageId;
  return 'turn' in event ? String(event.turn) : 'the run';
}

function errorIdentity({ situation, first, seen }: Observed, pair: readonly Member[]): string | undefined {
  const { outcome, at } = situation;
  const failing =
    outcome === 'transient error' || outcome === 'permanent error' || outcome === 'mid-stream cut';
  if (!failing || at !== 'model') return undefined;
  if (first.result.status === 'done') {
    const passes =
      outcome !== 'permanent error' && pair.some(({ recovers }) => recovers?.includes('transient-model'));
    return passes ? undefined : 'The error was swallowed.';
  }
  if (!(first.error instanceof RunError)) return `Expected a RunError, got ${ending(first)}.`;
  const { cause } = first.error;
  return cause === seen.thrown || isMapped(cause, seen.thrown, pair)
    ? undefined
    : `Another error came out: ${String(cause)}.`;
}

function toolErrorIdentity(observed: Observed, pair: readonly Member[]): string | undefined {
  const { situation, first, seen, actFailure } = observed;
  if (situation.at !== 'tool' || seen.thrown === undefined) return undefined;
  const answer = answerTo('act', first.history);
  if (!answer) return 'The call has no result.';
  const passed = pair.some(({ recovers = [] }) => recovers.includes('transient-tool'));
  if (!answer.isError)
    return passed && situation.outcome === 'transient error' ? undefined : 'The error was swallowed.';
  if (actFailure === undefined)
    return pair.some(({ recovers }) => recovers?.includes('tool'))
      ? undefined
      : 'It did not come out as an error.';
  return actFailure === seen.thrown || isMapped(actFailure, seen.thrown, pair)
    ? undefined
    : `Another error came out: ${String(actFailure)}.`;
}

/** Is this an error that one of the two declares to make, with the original in it? */
function isMapped(error: unknown, original: unknown, pair: readonly Member[]): boolean {
  if (!(error instanceof Error)) return false;
  const { code, errors = [] } = error as { code?: unknown; errors?: readonly unknown[] };
  if (!pair.some(({ maps }) => maps?.includes(String(code)))) return false;
  return [error.cause, ...errors].some((one) => one === original || isMapped(one, original, pair));
}

function goesWell({ situation, first, resumed }: Observed): string | undefined {
  if (situation.outcome === 'success' || (situation.at === 'tool' && situation.outcome.endsWith('error')))
    return wellEnded(first);
  return resumed && wellEnded(resumed);
}

function secondRun({ second }: Observed): string | undefined {
  const problem = wellEnded(second);
  if (problem) return problem;
  const act = answerTo('act', second.history);
  return act && textOf(act) === 'acted'
    ? undefined
    : `\`act\` had the result ${JSON.stringify(act && textOf(act))}.`;
}

function wellEnded(run: Ended): string | undefined {
  if (run.result.status !== 'done') return `Expected the run to be done, got ${ending(run)}.`;
  if (run.result.text !== FINAL) return `Expected ${FINAL}, got ${JSON.stringify(run.result.text)}.`;
  const answered = CALLS.filter((name) => answerTo(name, run.history));
  return answered.join() === CALLS.join()
    ? undefined
    : `Expected results of ${CALLS.join()}, got ${answered.join()}.`;
}

function ending({ result, error }: Ended): string {
  return `${result.status} (${error ? String(error.cause ?? error) : (result.stop.message ?? result.stop.reason)})`;
}
