/** Talks to a session: start, continue, steer, follow up, cancel, answer, regenerate, edit. */
import type { Decision, HistoryPoint } from '../../index.js';
import { events, runAnswer, sessionHeader, stopRun, wantsEvents } from '../answer-run.js';
import { nothing, runAnswers } from '../answer-schemas.js';
import { answerLive } from '../answering.js';
import { HttpFailure } from '../failures.js';
import { type Found, newSession, openSession, sessionOf } from '../find-session.js';
import { OpenState } from '../open-state.js';
import {
  agentSchema,
  answersSchema,
  type Call,
  detachedSchema,
  inputOf,
  inputSchema,
  messageNamed,
  type Route,
} from '../route.js';
import { object } from '../schema.js';
import { sseLines } from '../sse.js';
import { isTurn } from '../ui-history.js';

const agent = agentSchema;
const detached = detachedSchema;
const input = inputSchema;
const done = (): Response => new Response(undefined, { status: 204 });

export const runRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/sessions',
    operation: 'startSession',
    summary:
      'Starts a session with a first message, under an id that is made or given. The id is in `x-session-id`.',
    body: object({ input, agent, detached, sessionId: { type: 'string', minLength: 1, maxLength: 200 } }, [
      'input',
    ]),
    answers: runAnswers,
    async handle(call) {
      const { sessionId } = call.body;
      if (sessionId === undefined) return run(call, { ...newSession(call, newId(call)), isNew: true });
      if (await openSession(call, sessionId))
        throw new HttpFailure(
          409,
          'SESSION_EXISTS',
          'This session exists already. Continue it with POST /sessions/{sessionId}/runs.',
        );
      return run(call, newSession(call, sessionId));
    },
  },
  {
    method: 'POST',
    path: '/sessions/{sessionId}/runs',
    operation: 'continueSession',
    summary: 'Continues a session. Without `input`, the model is asked about the history as it is.',
    body: object({ input, agent, detached }),
    answers: runAnswers,
    async handle(call) {
      return run(call, await sessionOf(call));
    },
  },
  {
    method: 'POST',
    path: '/sessions/{sessionId}/resume',
    operation: 'resumeRun',
    summary: 'Continues a run that was suspended or broke off. `NOTHING_TO_RESUME` if there is none.',
    body: object({ agent, detached }),
    answers: runAnswers,
    async handle(call) {
      const found = await sessionOf(call);
      const state = new OpenState();
      for (const entry of await call.handling.store.read(found.storeId, 1)) state.apply(entry);
      if (!state.open)
        throw new HttpFailure(
          409,
          'NOTHING_TO_RESUME',
          'The last run of the session has ended. POST /sessions/{sessionId}/runs starts another.',
        );
      return runAnswer(call, found, { type: 'resume' });
    },
  },
  {
    method: 'POST',
    path: '/sessions/{sessionId}/answers',
    operation: 'answer',
    summary:
      'Answers questions, by their ids, and the run continues. The response is its events or its result; 204 if JSON is asked for while the run waits in this process.',
    body: object(
      {
        answers: answersSchema,
        agent,
        detached,
        resume: { type: 'boolean', description: 'False: only note the answers.' },
      },
      ['answers'],
    ),
    answers: { ...runAnswers, nothing: true },
    async handle(call) {
      const found = await sessionOf(call);
      const answers = call.body.answers as Readonly<Record<string, Decision>>;
      const pending = await found.session.pending();
      if (Object.keys(answers).some((id) => !pending.some((one) => one.id === id)))
        throw new HttpFailure(
          409,
          'REQUEST_UNKNOWN',
          'A question is not open: never asked, answered or lapsed.',
        );
      if (call.body.resume === false) {
        for (const [id, decision] of Object.entries(answers)) await found.session.answer(id, decision);
        return done();
      }
      if (!call.handling.hub.isLive(found.storeId))
        return runAnswer(call, found, { type: 'resume', answers });
      const reader = await answerLive(call, found, answers);
      if (wantsEvents(call.request)) return events(call, reader, sseLines, undefined, sessionHeader(found));
      reader.leave();
      return done();
    },
  },
  {
    method: 'POST',
    path: '/sessions/{sessionId}/steer',
    operation: 'steer',
    summary: 'Sends a message into a run: the model reads it before its next turn.',
    body: object({ input }, ['input']),
    answers: nothing,
    async handle(call) {
      await (await sessionOf(call)).session.steer(inputOf(call.body.input));
      return done();
    },
  },
  {
    method: 'POST',
    path: '/sessions/{sessionId}/follow-up',
    operation: 'followUp',
    summary: 'Sends a message for when the run would end.',
    body: object({ input }, ['input']),
    answers: nothing,
    async handle(call) {
      await (await sessionOf(call)).session.followUp(inputOf(call.body.input));
      return done();
    },
  },
  {
    method: 'POST',
    path: '/sessions/{sessionId}/cancel',
    operation: 'cancel',
    summary: 'Ends the run under way, in whichever process it is.',
    body: object({ reason: { type: 'string', maxLength: 1000 } }),
    answers: nothing,
    async handle(call) {
      await stopRun(call, await sessionOf(call), call.body.reason);
      return done();
    },
  },
  {
    method: 'POST',
    path: '/sessions/{sessionId}/regenerate',
    operation: 'regenerate',
    summary:
      'Another answer: in a copy of the session that ends before an answer or with a question, by default the last. Its id is in `x-session-id`.',
    body: object({ messageId: { type: 'string' }, fork: forkSchema(), agent, detached }),
    answers: runAnswers,
    async handle(call) {
      const found = await sessionOf(call);
      const messages = await found.session.messages();
      const { id, role } = messageNamed(messages, call.body.messageId ?? messages.findLast(isTurn)?.id ?? '');
      const branch = await branchAt(call, found, role === 'assistant' ? { before: id } : id);
      return runAnswer(call, branch, { type: 'continue' });
    },
  },
  {
    method: 'POST',
    path: '/sessions/{sessionId}/edit',
    operation: 'editMessage',
    summary: "Replaces a user's message, in a copy of the session that ends before it.",
    body: object({ messageId: { type: 'string' }, input, fork: forkSchema(), agent, detached }, [
      'messageId',
      'input',
    ]),
    answers: runAnswers,
    async handle(call) {
      const found = await sessionOf(call);
      const { id, role } = messageNamed(await found.session.messages(), call.body.messageId);
      if (role !== 'user')
        throw new HttpFailure(
          409,
          'NOT_EDITABLE',
          "Only a user's message can be edited; others can be regenerated.",
        );
      return run(call, await branchAt(call, found, { before: id }));
    },
  },
];

function forkSchema() {
  return { type: 'boolean', description: 'False: go back in this session instead of a copy.' } as const;
}

function run(call: Call, found: Found): Promise<Response> {
  const given = call.body.input;
  if (given === undefined) return runAnswer(call, found, { type: 'continue' });
  return runAnswer(call, found, { type: 'run', input: inputOf(given) });
}

/** A copy of the session that ends at this point, or the session itself, rewound to it. */
async function branchAt(call: Call, found: Found, point: HistoryPoint): Promise<Found> {
  if (call.body.fork === false) {
    await found.session.rewind(point);
    return found;
  }
  const branch = newSession(call, newId(call));
  const session = await found.session.fork(point, { id: branch.storeId });
  return { ...found, sessionId: branch.sessionId, storeId: branch.storeId, session };
}

function newId({ handling }: Call): string {
  return `s_${handling.agents.values().next().value!.newId()}`;
}
