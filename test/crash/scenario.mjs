// The session that is killed over and over: two runs of several turns, parallel tools, steering, a follow-up, questions
// to a person, state cells, and calls of a middleware's own. The script depends only on the history, and ids only on
// the place of the run, so every process that takes over has the same words to say.

import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, defineMiddleware, defineState, tool } from 'allium';
import { approval, ask, deny } from 'allium/middleware/approval';
import { chunks, scriptedModel, text } from 'allium/testing';

/** @import { PendingRequest, RunResult, Session, Store, Tool } from 'allium' */

export const INPUTS = ['Plan the trip.', 'Now pay for it.'];
export const STEERING = 'By train, please.';
export const FOLLOW_UP = 'Thank you.';

/** What the model says, by the number of answers before. */
const ANSWERS = [
  calls('Let me see. ', ['a', 'book'], ['b', 'look'], ['c', 'book']),
  calls('By train, then. ', ['d', 'look'], ['e', 'book']),
  text('The trip is planned.'),
  text('You are welcome.'),
  calls('I pay. ', ['f', 'pay'], ['g', 'look'], ['h', 'drop']),
  calls('I sign. ', ['i', 'sign'], ['j', 'look'], ['k', 'book']),
  text('All is paid.'),
];

/** Tools whose effect may happen at most once. The others carry the same key each time. */
export const AT_MOST_ONCE = ['book', 'pay', 'sign', 'drop'];

function calls(/** @type {string} */ before, /** @type {string[][]} */ ...list) {
  return chunks(
    ...before.split(/(?<= )/).flatMap((word) => [/** @type {const} */ ('tick'), word]),
    ...list.map(([id, name]) => ({
      type: /** @type {const} */ ('tool-call'),
      id: id ?? '',
      name: name ?? '',
      arguments: JSON.stringify({ id }),
    })),
  );
}

/**
 * @typedef {object} Surroundings
 * @property {Store} store
 * @property {(effect: { tool: string, callId: string, key: string }) => void} effect Does what cannot be undone.
 * @property {() => number} delayMs How long the next step of a tool takes.
 * @property {number} [storeTimeoutMs]
 * @property {() => void} [posted] Told when an answer is in the inbox.
 */

/** The agent for the run that begins with input number `place`. */
function agentFor(
  /** @type {Surroundings} */ { store, effect, delayMs, storeTimeoutMs = 30_000 },
  /** @type {number} */ place,
) {
  const answers = defineState({ name: 'answers', scope: 'run', initial: 0 });
  const results = defineState({ name: 'results', scope: 'session', initial: 0 });
  const advisor = scriptedModel([text('Go on.')], { id: 'advisor', repeat: true });
  const tally = defineMiddleware({
    name: 'tally',
    state: [answers, results],
    extraLlmCalls: () => [advisor],
    beforeModel: async (ctx) => void (await ctx.generate(advisor, { messages: 'Shall I?' })),
    afterModel: (ctx) => ctx.state.update(answers, (n) => n + 1),
    afterToolCall: (ctx) => ctx.state.update(results, (n) => n + 1),
  });
  /** @param {string} name @param {{ idempotent?: boolean, asks?: boolean }} [options] @returns {Tool} */
  const make = (name, { idempotent = false, asks = false } = {}) =>
    tool({
      name,
      description: name,
      input: anything,
      idempotent,
      async execute({ id }, ctx) {
        if (asks) await ctx.suspend({ title: 'Sign here.' });
        await sleep(delayMs());
        effect({ tool: name, callId: id, key: ctx.idempotencyKey });
        await sleep(delayMs());
        return `${name} ${id}: done`;
      },
    });
  const tools = [
    make('look', { idempotent: true }),
    make('book'),
    make('pay'),
    make('sign', { asks: true }),
    make('drop'),
  ];
  const model = scriptedModel(
    [
      ({ messages }) =>
        ANSWERS[messages.filter(({ role }) => role === 'assistant').length] ?? text('Nothing more to say.'),
    ],
    { repeat: true },
  );
  return new Agent({
    model,
    tools,
    store,
    storeTimeoutMs,
    middleware: [tally],
    newId: () => `trip${place + 1}`,
  });
}

/** The second run asks about payments; the first has nothing that decides about calls. */
const middlewareOf = (/** @type {number} */ place) =>
  place === 0 ? [] : [approval({ policy: { pay: ask({ limit: 100 }), drop: deny('Never.'), '*': 'allow' } })];

/**
 * Takes the session from wherever its journal stands to the end, as any process would.
 *
 * @param {string} sessionId
 * @param {Surroundings} surroundings
 * @param {number} [runs] How many of the runs.
 */
export async function drive(sessionId, surroundings, runs = INPUTS.length) {
  for (;;) {
    const { begun, open } = await standOf(surroundings.store, sessionId);
    if (!open && begun >= runs) return;
    const place = open ? begun - 1 : begun;
    const middleware = middlewareOf(place);
    const session = agentFor(surroundings, place).session(sessionId);
    try {
      let result = open
        ? await session.resume({ middleware })
        : await session.run(INPUTS[place] ?? '', { middleware });
      while (result.status === 'suspended') {
        const answers = await answer(session, result, surroundings);
        result = await session.resume({ middleware, answers });
      }
    } catch (error) {
      // Another process brought the run to its end since we looked.
      if (/** @type {{ code?: string }} */ (error).code !== 'SESSION_UNKNOWN') throw error;
    }
  }
}

/** Half of the answers go through the inbox, as from another process; the others come with the resume. */
async function answer(
  /** @type {Session} */ session,
  /** @type {RunResult} */ { pending },
  /** @type {Surroundings} */ { posted },
) {
  /** @type {Record<string, { type: 'approve', hash: string }>} */
  const answers = {};
  for (const { id, hash, kind } of pending) {
    if (kind === 'suspend') answers[id] = { type: 'approve', hash };
    else {
      await session.answer(id, { type: 'approve', hash });
      posted?.();
    }
  }
  return answers;
}

async function standOf(/** @type {Store} */ store, /** @type {string} */ sessionId) {
  const entries = await store.read(sessionId, 1);
  const begun = entries.filter(({ type }) => type === 'run_start').length;
  return { begun, open: begun > entries.filter(({ type }) => type === 'run_end').length };
}

/** What is in the inbox before the first process starts. */
export async function prepare(/** @type {Store} */ store, /** @type {string} */ sessionId) {
  const session = new Agent({ model: scriptedModel([]), store }).session(sessionId);
  await session.steer(STEERING);
  await session.followUp(FOLLOW_UP);
}

/** The history as a newcomer reads it. */
export async function historyOf(/** @type {Store} */ store, /** @type {string} */ sessionId) {
  return await new Agent({ model: scriptedModel([]), store }).session(sessionId).messages();
}

// By hand: a process that is killed at once should not spend its life loading a schema library.
/** @type {import('allium').StandardSchema<{ id: string }>} */
const anything = {
  '~standard': {
    version: 1,
    vendor: 'crash',
    validate: (value) => ({ value: /** @type {{ id: string }} */ (value) }),
    jsonSchema: { input: () => ({ type: 'object' }) },
  },
};
