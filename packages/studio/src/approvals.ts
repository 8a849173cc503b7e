/** The inbox: what runs ask people, and the answers people give here. */
import { type Agent, type Decision, type Entry, type PendingRequest, type Tool, toolSpec } from 'allium';
import { problemWithAnswer } from 'allium/kit';
import { listRuns } from './run-list.js';
import type { Sources } from './sources.js';
import type { Summaries } from './summaries.js';
import type { AnswerOutcome, Question, RunRow } from './wire.js';

export interface QuestionPage {
  readonly questions: readonly Question[];
  readonly next?: string;
  readonly scanned: number;
}

/** A page of open questions, newest session first. */
export async function listQuestions(
  sources: Sources,
  summaries: Summaries,
  agents: readonly Agent[],
  cursor: string | undefined,
): Promise<QuestionPage> {
  const { rows, next, scanned } = await listRuns(sources, summaries, { status: ['suspended'] }, cursor);
  const questions: Question[] = [];
  for (const row of rows) questions.push(...(await questionsOf(sources, agents, row)));
  return { questions, scanned, ...(next !== undefined && { next }) };
}

/** The open questions of a run. A session has one run at a time, so only its last one can wait. */
export async function questionsOf(
  sources: Sources,
  agents: readonly Agent[],
  row: Pick<RunRow, 'sessionId' | 'runId' | 'tenant'>,
): Promise<readonly Question[]> {
  const open = new Map<string, PendingRequest>();
  for (const entry of await sources.read(row.sessionId, 1)) {
    if (entry.type === 'request' && entry.runId === row.runId) {
      for (const id of entry.replaces ?? []) open.delete(id);
      open.set(entry.request.id, entry.request);
    } else if (entry.type === 'answer') open.delete(entry.requestId);
    else if (entry.type === 'run_start' && entry.runId !== row.runId) open.clear();
    else if (entry.type === 'run_end' && entry.status !== 'suspended') open.clear();
  }
  if (open.size === 0) return [];
  const answered = await answersReady(sources, row.sessionId);
  return [...open.values()].map((request) => {
    const tool = toolNamed(agents, request.toolName);
    const given = answered.get(request.id);
    return {
      sessionId: row.sessionId,
      ...(row.tenant !== undefined && { tenant: row.tenant }),
      request,
      ...(tool && { schema: toolSpec(tool).inputSchema }),
      ...(given && { answered: given.type }),
    };
  });
}

/** Answers that no run has taken yet. The first one counts. */
async function answersReady(sources: Sources, sessionId: string): Promise<Map<string, Decision>> {
  const answers = new Map<string, Decision>();
  for (const { item } of await sources.inbox(sessionId))
    if (item.type === 'answer' && !answers.has(item.requestId)) answers.set(item.requestId, item.decision);
  return answers;
}

function toolNamed(agents: readonly Agent[], name: string): Tool | undefined {
  for (const { plan } of agents) {
    const tool = plan.tools.find((one) => one.name === name);
    if (tool) return tool;
  }
  return undefined;
}

export interface GivenAnswer {
  readonly sessionId: string;
  readonly requestId: string;
  readonly decision: Decision;
}

/** When the server looks whether a run has taken the answer: milliseconds from one look to the next. */
const LOOKS_MS = [50, 100, 200, 400, 750];

/**
 * Answers a question. A run that waits, in whichever process, takes the answer from its inbox. Throws if the
 * answer doesn't fit, before the question is used up.
 */
export async function answerQuestion(
  sources: Sources,
  agents: readonly Agent[],
  /** For sessions that no configured agent knows: its store and id are all that counts. */
  anyone: Agent,
  { sessionId, requestId, decision }: GivenAnswer,
): Promise<AnswerOutcome & { readonly tenant?: string }> {
  const question = await openQuestion(sources, agents, sessionId, requestId);
  const { request, tenant } = question;
  const problem = await problemWithAnswer(request, decision, toolNamed(agents, request.toolName));
  if (problem !== undefined) throw new AnswerRefused(problem);
  const store = await sources.storeOf(sessionId);
  const session = anyone.session(sessionId, { store, ...(tenant !== undefined && { tenant }) });
  const last = (await sources.read(sessionId, 1)).at(-1)?.seq ?? 0;
  await session.answer(requestId, { ...decision, hash: request.hash });
  for (const ms of LOOKS_MS) {
    await new Promise((resolve) => setTimeout(resolve, ms));
    // A run journals an answer when it takes it. Only what is new is read: the session may be long.
    const since = await sources.read(sessionId, last + 1);
    if (since.some((entry) => isTaking(entry, requestId))) return { taken: true };
  }
  return {
    taken: false,
    ...(tenant !== undefined && { tenant }),
    hint: `No process waits for it. The answer counts when the run is resumed: allium sessions resume ${sessionId}`,
  };
}

function isTaking(entry: Entry, requestId: string): boolean {
  return entry.type === 'run_end' || (entry.type === 'answer' && entry.requestId === requestId);
}

export class AnswerRefused extends Error {
  override readonly name = 'AnswerRefused';
}

async function openQuestion(
  sources: Sources,
  agents: readonly Agent[],
  sessionId: string,
  requestId: string,
): Promise<Question> {
  const entries = await sources.read(sessionId, 1);
  const asked = entries.findLast((one) => one.type === 'request' && one.request.id === requestId);
  const start = entries.find((one) => one.type === 'run_start');
  const tenant = start?.type === 'run_start' ? start.tenant : undefined;
  const row = {
    sessionId,
    runId: asked?.type === 'request' ? asked.runId : '',
    ...(tenant !== undefined && { tenant }),
  };
  const open = asked ? await questionsOf(sources, agents, row) : [];
  const question = open.find(({ request }) => request.id === requestId);
  if (!question) throw new AnswerRefused('This question is not open any more.');
  return question;
}
