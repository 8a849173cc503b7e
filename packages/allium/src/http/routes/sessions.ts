/** Agents, and sessions as they are: list, look, history, events, delete. */

import { events, isBusy, readerOf } from '../answer-run.js';
import { nothing, pages, ref } from '../answer-schemas.js';
import { parseCursor } from '../cursor.js';
import type { ClientMessage } from '../events.js';
import { HttpFailure } from '../failures.js';
import { sessionOf } from '../find-session.js';
import { allowanceOf, questionOf } from '../projection.js';
import { limitOf, messageNamed, type Route } from '../route.js';
import { listSessions } from '../session-list.js';
import { sseLines } from '../sse.js';

export const sessionRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/agents',
    operation: 'listAgents',
    summary: 'The agents and their tools.',
    answers: { json: pages.agents },
    handle({ handling: { agents } }) {
      const listed = [...agents].map(([name, { plan }]) => ({
        name,
        tools: plan.tools.map(({ name, description }) => ({ name, description })),
      }));
      return Response.json({ agents: listed });
    },
  },
  {
    method: 'GET',
    path: '/sessions',
    operation: 'listSessions',
    summary: 'Sessions, newest first.',
    query: {
      limit: 'How many at most, up to 100. A page may have fewer.',
      cursor: 'The `next` of the page before.',
    },
    answers: { json: pages.sessions },
    async handle(call) {
      return Response.json(await listSessions(call, limitOf(call, 50, 100)));
    },
  },
  {
    method: 'GET',
    path: '/sessions/{sessionId}',
    operation: 'getSession',
    summary: 'Whether a run is under way in this process, its questions, and messages that wait.',
    answers: { json: ref('Session') },
    async handle(call) {
      const { session, sessionId, storeId } = await sessionOf(call);
      const [pending, queued] = await Promise.all([session.pending(), session.queued()]);
      return Response.json({
        sessionId,
        running: await isBusy(call, storeId),
        questions: pending.map(questionOf),
        queued: queued.map(({ id, kind }) => ({ id, kind })),
      });
    },
  },
  {
    method: 'DELETE',
    path: '/sessions/{sessionId}',
    operation: 'deleteSession',
    summary: 'Deletes a session with everything in it. Cancel its run first.',
    answers: nothing,
    async handle(call) {
      const { storeId } = await sessionOf(call);
      const { store } = call.handling;
      if (await isBusy(call, storeId))
        throw new HttpFailure(409, 'SESSION_BUSY', 'The session has a run under way.');
      await store.delete(storeId);
      return new Response(undefined, { status: 204 });
    },
  },
  {
    method: 'GET',
    path: '/sessions/{sessionId}/messages',
    operation: 'listMessages',
    summary: 'The history, oldest first: its last messages, or those before a message.',
    query: { limit: 'How many at most, up to 200.', before: 'The `previous` of the page after.' },
    answers: { json: pages.messages },
    async handle(call) {
      const { session } = await sessionOf(call);
      const limit = limitOf(call, 50, 200);
      const messages = await session.messages();
      const before = call.query.get('before');
      const end = before === undefined ? messages.length : messages.indexOf(messageNamed(messages, before));
      const page: ClientMessage[] = [];
      let at = end;
      while (at > 0 && page.length < limit) {
        const shown = call.handling.projection.message(messages[--at]!);
        if (shown) page.unshift(shown);
      }
      return Response.json({ messages: page, ...(at > 0 && { previous: messages[at]!.id }) });
    },
  },
  {
    method: 'GET',
    path: '/sessions/{sessionId}/events',
    operation: 'joinSession',
    summary:
      'The events of a session: past ones, then new ones. Ends with the run; 204 if there is nothing left to send.',
    query: {
      after: 'As the header `Last-Event-ID`: the id of the last event, `run` for the last run, or `now`.',
    },
    answers: { events: ref('Event'), nothing: true },
    async handle(call) {
      const { storeId } = await sessionOf(call);
      const after = call.request.headers.get('last-event-id') ?? call.query.get('after');
      if (after !== undefined && after !== 'run' && after !== 'now' && !parseCursor(after))
        throw new HttpFailure(400, 'INVALID_REQUEST', 'That is not the id of an event.');
      const reader = readerOf(call, storeId, after);
      // A client that reconnects after the end has to stop: browsers do so after a 204.
      if (after !== undefined && !(await reader.hasMore())) return new Response(undefined, { status: 204 });
      return events(call, reader, sseLines);
    },
  },
  {
    method: 'GET',
    path: '/sessions/{sessionId}/questions',
    operation: 'listQuestions',
    summary: 'The questions that wait for an answer.',
    answers: { json: pages.questions },
    async handle(call) {
      const { session } = await sessionOf(call);
      return Response.json({ questions: (await session.pending()).map(questionOf) });
    },
  },
  {
    method: 'GET',
    path: '/sessions/{sessionId}/allowances',
    operation: 'listAllowances',
    summary: 'What was approved with `remember`, and is not asked again in this session.',
    answers: { json: pages.allowances },
    async handle(call) {
      const { session } = await sessionOf(call);
      return Response.json({ allowances: (await session.allowances()).map(allowanceOf) });
    },
  },
  {
    method: 'DELETE',
    path: '/sessions/{sessionId}/allowances/{allowanceId}',
    operation: 'revokeAllowance',
    summary: 'Revokes an allowance: the next such call asks again, also in a run under way.',
    answers: nothing,
    async handle(call) {
      const { session } = await sessionOf(call);
      if (!(await session.revoke(call.parameters.allowanceId!)))
        throw new HttpFailure(404, 'ALLOWANCE_UNKNOWN', 'There is no such allowance, or none any more.');
      return new Response(undefined, { status: 204 });
    },
  },
];
