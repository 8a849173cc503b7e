/** Makes a tree from the journal of a session: runs, their turns, their calls and the outcomes. */
import { type Decision, type Entry, type TraceRecord, textOf, toolCallsOf } from 'allium';
import type { Style } from '../terminal/style.js';
import { count, dollars, moment, seconds, short, word } from '../terminal/text.js';

export interface TraceNode {
  readonly kind:
    | 'session'
    | 'run'
    | 'turn'
    | 'message'
    | 'call'
    | 'question'
    | 'result'
    | 'act'
    | 'state'
    | 'end';
  readonly text: string;
  /** Of a run or a call. */
  readonly id?: string;
  /** The entry it stands for. */
  readonly seq?: number;
  readonly bad?: boolean;
  readonly children: readonly TraceNode[];
}

type Node = { -readonly [K in keyof TraceNode]: K extends 'children' ? Node[] : TraceNode[K] };

interface RunTrace {
  readonly node: Node;
  /** Where anything goes that belongs to no turn yet: the latest turn, or the run. */
  turn: Node | undefined;
  readonly calls: Map<string, { node: Node; startedAt: number | undefined }>;
  readonly questions: Map<string, Node>;
  turns: number;
  tokens: number;
  costUsd: number | undefined;
  priced: boolean;
  lastAt: number;
  readonly startedAt: number;
}

export function traceOf(
  sessionId: string,
  entries: readonly Entry[],
  options: { readonly state?: boolean } = {},
): TraceNode {
  const root: Node = { kind: 'session', text: `session ${word(sessionId)}`, children: [] };
  const runs = new Map<string, RunTrace>();
  let current: RunTrace | undefined;
  for (const entry of entries) {
    const runId = 'runId' in entry ? entry.runId : undefined;
    if (entry.type === 'run_start' && !runs.has(entry.runId)) {
      const run = startOf(entry);
      runs.set(entry.runId, run);
      root.children.push(run.node);
    }
    current = (runId === undefined ? undefined : runs.get(runId)) ?? current;
    if (!current) continue;
    if (entry.type === 'state' && !options.state) continue;
    add(current, entry);
    current.lastAt = entry.at;
  }
  for (const run of runs.values()) run.node.text += facts(run);
  return root;
}

function startOf(entry: Entry & { type: 'run_start' }): RunTrace {
  const plan = entry.plan.length > 0 ? ` · ${entry.plan.map(word).join(' → ')}` : '';
  const text = `run ${word(entry.runId)} · ${moment(entry.at)}${plan}`;
  return {
    node: { kind: 'run', id: entry.runId, seq: entry.seq, text, children: [] },
    turn: undefined,
    calls: new Map(),
    questions: new Map(),
    turns: 0,
    tokens: 0,
    costUsd: undefined,
    priced: true,
    lastAt: entry.at,
    startedAt: entry.at,
  };
}

function add(run: RunTrace, entry: Entry): void {
  switch (entry.type) {
    case 'message':
      addMessage(run, entry);
      if (entry.started)
        for (const { id, name } of toolCallsOf(entry.message)) callOf(run, id, name).startedAt = entry.at;
      return;
    case 'tool_started': {
      const call = callOf(run, entry.callId, entry.callId);
      call.startedAt = entry.at;
      return;
    }
    case 'request': {
      const { request } = entry;
      const asked = leaf('question', `asked: ${short(request.title ?? request.toolName)}`, entry.seq);
      run.questions.set(request.id, asked);
      callOf(run, request.callId, request.toolName).node.children.push(asked);
      return;
    }
    case 'answer': {
      const question = run.questions.get(entry.requestId);
      if (question)
        question.text += ` → ${answerText(entry.decision)} after ${seconds(entry.at - run.lastAt)}`;
      // What guards and hooks made of it may follow as another answer; the result of the call shows that.
      run.questions.delete(entry.requestId);
      return;
    }
    case 'tool_finished': {
      const { message } = entry;
      const { node, startedAt } = callOf(run, message.toolCallId, message.toolName);
      // The start of calls that may be repeated isn't journaled.
      const took = startedAt === undefined ? '' : ` · ${seconds(entry.at - startedAt)}`;
      const text = `${message.isError ? '✗' : '✓'} ${short(textOf(message), 100)}${took}`;
      node.children.push({ ...leaf('result', text, entry.seq), bad: message.isError });
      return;
    }
    case 'usage':
      spend(run, entry.usage.totalTokens, entry.costUsd);
      return;
    case 'state':
      (run.turn ?? run.node).children.push(
        leaf(
          'state',
          `state ${word(entry.cell)} = ${short(JSON.stringify(entry.value) ?? '', 80)}`,
          entry.seq,
        ),
      );
      return;
    case 'trace':
      for (const record of entry.records) addAct(run, record, entry.seq);
      return;
    case 'rewind':
      run.node.children.push(leaf('end', `rewound to ${entry.to ?? 'the beginning'}`, entry.seq));
      return;
    case 'run_end': {
      const { status, stop } = entry;
      const why = [stop.reason, stop.by, stop.message].filter(Boolean).join(', ');
      const end = leaf('end', `${status}: ${short(why, 160)}`, entry.seq);
      run.node.children.push({ ...end, bad: status === 'error' || status === 'aborted' });
      return;
    }
  }
}

function addMessage(run: RunTrace, entry: Entry & { type: 'message' }): void {
  const { message } = entry;
  if (message.role !== 'assistant' || entry.seeded) {
    const who =
      message.metadata?.synthetic === true ? String(message.metadata.source ?? 'synthetic') : message.role;
    run.node.children.push(leaf('message', `${word(who)}: ${short(textOf(message), 100)}`, entry.seq));
    return;
  }
  run.turns++;
  const { usage, model, metadata } = message;
  if (usage) spend(run, usage.totalTokens, entry.costUsd);
  const spent = usage ? `${usage.inputTokens} → ${usage.outputTokens} tokens` : undefined;
  const about = [
    model === undefined ? undefined : word(model),
    metadata?.cacheHit === true ? 'from the cache' : spent,
    seconds(entry.at - run.lastAt),
  ].filter((part) => part !== undefined);
  const turn: Node = {
    kind: 'turn',
    text: `turn ${run.turns} · ${about.join(' · ')}`,
    seq: entry.seq,
    children: [],
  };
  run.turn = turn;
  run.node.children.push(turn);
  const said = textOf(message);
  if (said !== '') turn.children.push(leaf('message', `says: ${short(said, 100)}`, entry.seq));
  for (const call of toolCallsOf(message)) {
    const node = {
      ...leaf('call', `${word(call.name)} ${short(call.arguments, 100)}`, entry.seq),
      id: call.id,
    };
    turn.children.push(node);
    run.calls.set(call.id, { node, startedAt: undefined });
  }
}

/** What somebody did, beside the call or turn it is about. Models and tools are in the tree themselves. */
function addAct(run: RunTrace, record: TraceRecord, seq: number): void {
  const { by, hook, did, what, ms, callId, error } = record;
  if (by === 'agent' || did === 'called') return;
  const why = error && !what ? `: ${error.message ?? error.name}` : '';
  const who = hook === 'note' ? word(by) : `${word(by)} (${hook})`;
  const took = ms >= 1 ? ` · ${seconds(ms)}` : '';
  const act = leaf('act', `${who} ${short(`${what ?? did}${why}`, 100)}${took}`, seq);
  const call = callId === undefined ? undefined : run.calls.get(callId);
  const { children } = call?.node ?? run.turn ?? run.node;
  // The journal has the result of a call first, but it is what all this came to.
  const result = call ? children.findIndex(({ kind }) => kind === 'result') : -1;
  children.splice(result < 0 ? children.length : result, 0, { ...act, bad: did === 'failed' });
}

/** The call with that id. It is shown even if the journal lacks its message. */
function callOf(run: RunTrace, id: string, name: string): { node: Node; startedAt: number | undefined } {
  let call = run.calls.get(id);
  if (!call) {
    call = { node: { ...leaf('call', word(name)), id }, startedAt: undefined };
    run.calls.set(id, call);
    (run.turn ?? run.node).children.push(call.node);
  }
  return call;
}

function spend(run: RunTrace, tokens: number, costUsd: number | undefined): void {
  run.tokens += tokens;
  if (costUsd === undefined) run.priced = false;
  else run.costUsd = (run.costUsd ?? 0) + costUsd;
}

function facts(run: RunTrace): string {
  const cost = run.priced && run.costUsd !== undefined ? [dollars(run.costUsd)] : [];
  const parts = [
    count(run.turns, 'turn'),
    count(run.tokens, 'token'),
    ...cost,
    seconds(run.lastAt - run.startedAt),
  ];
  return ` · ${parts.join(' · ')}`;
}

function answerText(decision: Decision): string {
  if (decision.type === 'reject') return decision.reason ? `reject (${short(decision.reason)})` : 'reject';
  if (decision.type === 'edit') return `edit ${short(JSON.stringify(decision.args) ?? '')}`;
  if (decision.type === 'respond') return `respond "${short(decision.text)}"`;
  return 'approve';
}

function leaf(kind: TraceNode['kind'], text: string, seq?: number): Node {
  return { kind, text, ...(seq !== undefined && { seq }), children: [] };
}

/** The tree with its branches drawn. */
export function treeLines(node: TraceNode, style: Style): string[] {
  return [paint(node, style), ...branches(node, '', style)];
}

function branches(node: TraceNode, indent: string, style: Style): string[] {
  return node.children.flatMap((child, index) => {
    const last = index === node.children.length - 1;
    const line = `${style.dim(`${indent}${last ? '└─ ' : '├─ '}`)}${paint(child, style)}`;
    return [line, ...branches(child, `${indent}${last ? '   ' : '│  '}`, style)];
  });
}

function paint({ kind, text, bad }: TraceNode, style: Style): string {
  if (bad) return style.red(text);
  if (kind === 'session' || kind === 'run') return style.bold(text);
  if (kind === 'turn') return style.cyan(text);
  if (kind === 'question') return style.yellow(text);
  return kind === 'state' || kind === 'act' ? style.dim(text) : text;
}
