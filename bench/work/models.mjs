/** Instantaneous in-process models behind Allium's model port. They keep no state: the history tells the turn. */
import { ARGUMENTS, NAME } from './tool.mjs';

export const USAGE = Object.freeze({ inputTokens: 10, outputTokens: 5 });
export const DELTA = 'word ';

/** A history is one user message and two messages per turn, so its length says which turn this is. */
export const turnOf = (messageCount) => (messageCount - 1) / 2;

/**
 * Asks for one tool call in each of `turns` turns, then answers with text.
 *
 * @param {number} turns
 * @param {(turn: number) => void | Promise<void>} [before] awaited at the start of each answer, where given
 */
export function callingModel(turns, before) {
  return {
    provider: 'bench',
    id: 'calling',
    async *stream(request) {
      const turn = turnOf(request.messages.length);
      if (before) await before(turn);
      if (turn < turns) {
        yield { type: 'tool-call', id: `call-${turn}`, name: NAME, arguments: ARGUMENTS };
        yield { type: 'finish', reason: 'tool-calls', usage: USAGE };
      } else {
        yield { type: 'text', text: 'done' };
        yield { type: 'finish', reason: 'stop', usage: USAGE };
      }
    },
  };
}

/**
 * The same as one async function that returns the whole answer, as a hand-written loop would call a provider's client.
 *
 * @param {number} turns
 * @param {(turn: number) => void | Promise<void>} [before] awaited at the start of each answer, where given
 */
export function callingFunction(turns, before) {
  return async ({ messages }) => {
    const turn = turnOf(messages.length);
    if (before) await before(turn);
    if (turn >= turns) return { content: [{ type: 'text', text: 'done' }], usage: USAGE, stopReason: 'stop' };
    const call = { type: 'tool-call', id: `call-${turn}`, name: NAME, arguments: ARGUMENTS };
    return { content: [call], usage: USAGE, stopReason: 'tool-calls' };
  };
}

/** Answers with `count` small pieces of text; `piece(i)` makes each one. */
export function talkingModel(count, piece = () => DELTA) {
  return {
    provider: 'bench',
    id: 'talking',
    async *stream() {
      for (let i = 0; i < count; i++) yield { type: 'text', text: piece(i) };
      yield { type: 'finish', reason: 'stop', usage: USAGE };
    },
  };
}

/** The same from a plain generator: nothing in the model itself waits, so that all of the cost is the reader's. */
export function readyModel(count) {
  return {
    provider: 'bench',
    id: 'ready',
    *stream() {
      for (let i = 0; i < count; i++) yield { type: 'text', text: DELTA };
      yield { type: 'finish', reason: 'stop', usage: USAGE };
    },
  };
}

/**
 * As `callingModel`, with other arguments in every turn and JSON as its closing answer: what looks for loops finds none,
 * and what validates the answer is content.
 */
export function varyingModel(turns) {
  return {
    provider: 'bench',
    id: 'varying',
    async *stream(request) {
      const turn = turnOf(request.messages.length);
      if (turn < turns) {
        yield { type: 'tool-call', id: `call-${turn}`, name: NAME, arguments: `{"a":${turn},"b":2}` };
        yield { type: 'finish', reason: 'tool-calls', usage: USAGE };
      } else {
        yield { type: 'text', text: '{"a":1,"b":2}' };
        yield { type: 'finish', reason: 'stop', usage: USAGE };
      }
    },
  };
}
