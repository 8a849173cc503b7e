/** What each decision hook may return, as text for errors and as a check. */

import { isRequest } from '../context/request-shape.js';
import { AlliumError, hasOnly, isRecord, shown } from '../lib/errors.js';
import { unwritable } from '../lib/frozen-json.js';
import * as kinds from '../lib/kinds.js';
import { isOf, type Kind } from '../lib/shapes.js';
import { lackOf, lackOfMessages } from '../messages/message-input.js';
import type { Message, ToolCall } from '../messages/messages.js';
import { isResultContent, type ToolResultPatch } from '../messages/tool-result.js';
import type { TurnAction } from '../protocol/middleware.js';
import type { RuleHook } from '../protocol/plan.js';
import { STOPPING } from '../protocol/stop.js';
import { isTool } from '../protocol/tool.js';

interface Shape {
  /** Completes "Return …". */
  readonly wanted: string;
  /** What a message in the answer lacks, or '' if it is wrong otherwise. `given`: what the hook was called with. */
  readonly wrong: (answer: any, given: unknown) => string | undefined;
}

const BLOCK: Kind = kinds.shape({
  block: kinds.required(kinds.kind('true', (value) => value === true)),
  reason: kinds.text,
});

const ARGS: Kind = kinds.kind('{ args }', (answer) => hasOnly(answer, ['args']) && 'args' in answer);
const RESULT: Kind = kinds.shape({ result: kinds.required(kinds.anything) });
const ASK: Kind = kinds.shape({ ask: kinds.required(kinds.kind('a request', isRequest)) });

const PATCH: Kind = kinds.shape({
  content: kinds.either(kinds.text, kinds.kind('content', isResultContent)),
  details: kinds.kind('JSON', (value) => unwritable(value) === undefined),
  isError: kinds.flag,
  terminate: kinds.flag,
} satisfies Record<keyof ToolResultPatch, Kind>);

const ACTION: Kind = kinds.shape({
  response: kinds.kind('a response', (value) => lackOf(value, 'assistant') === undefined),
  injectMessages: kinds.kind('messages', (value) => lackOfInjected(value) === undefined),
  decision: kinds.oneOf('natural', 'stop', 'loop_to_model'),
  why: kinds.text,
} satisfies Record<keyof TurnAction, Kind>);

/** A hook can't declare a suspension, error or abort. */
const STOP: Kind = kinds.shape({
  reason: kinds.required(kinds.kind('a reason', (value) => STOPPING.has(value))),
  message: kinds.text,
});

/** The value must be of one of these kinds. */
function of(...wanted: readonly Kind[]): Shape['wrong'] {
  return (answer) => (wanted.some((kind) => isOf(kind, answer)) ? undefined : '');
}

const MESSAGES: Shape = {
  wanted: 'a list of messages, or nothing',
  wrong: (answer, given) =>
    answer === given ? undefined : lackOfMessages(answer, given as readonly Message[]),
};

export const SHAPES: Record<RuleHook, Shape> = {
  acceptMessage: {
    wanted: 'a message, { block: true, reason }, or nothing',
    wrong: (answer) =>
      isRecord(answer) && 'role' in answer
        ? lackOf(answer, 'user', 'assistant', 'tool')
        : of(BLOCK)(answer, undefined),
  },
  transformContext: MESSAGES,
  transformSystemPrompt: { wanted: 'the prompt as text, or nothing', wrong: of(kinds.text) },
  convertToLlm: MESSAGES,
  resolveToolCall: {
    wanted:
      '{ toolCall: { name, arguments }, tool? } with arguments as JSON text and a tool made by tool(), or nothing',
    wrong: (answer, given) => of(resolved(given as ToolCall))(answer, given),
  },
  beforeToolCall: {
    wanted:
      '{ block: true, reason }, { args }, { ask: { title?, details?, timeoutMs?, decisions?, remember?, onRequest? } }, { result }, or nothing',
    wrong: of(BLOCK, ARGS, RESULT, ASK),
  },
  afterToolCall: {
    wanted:
      '{ content?, details?, isError?, terminate? } with content as text or a list of text, image and file parts and details that can be written as JSON, or nothing',
    wrong: of(PATCH),
  },
  afterModelResponse: {
    wanted:
      "{ response?, injectMessages?: messages, decision?: 'natural' | 'stop' | 'loop_to_model', why?: text }, or nothing",
    wrong(answer) {
      if (isOf(ACTION, answer)) return undefined;
      const { response, injectMessages } = Object(answer);
      const lack = response === undefined ? undefined : lackOf(response, 'assistant');
      return lack ?? lackOfInjected(injectMessages) ?? '';
    },
  },
  shouldStopAfterTurn: {
    wanted: 'true, false, or { reason, message } with a reason such as "stopped" and a message of text',
    wrong: of(kinds.flag, STOP),
  },
  onRunEnd: {
    wanted: 'a list of user messages (or assistant messages without calls), or nothing',
    wrong: lackOfInjected,
  },
  compact: { wanted: 'nothing', wrong: () => '' },
};

/** The call may keep the fields of the given one. Others, such as `args`, would be ignored. */
function resolved(given: ToolCall): Kind {
  const kept = Object.fromEntries(Object.keys(given).map((name) => [name, kinds.anything]));
  const toolCall = kinds.shape({
    ...kept,
    type: kinds.anything,
    id: kinds.anything,
    metadata: kinds.anything,
    name: kinds.required(kinds.text),
    arguments: kinds.required(kinds.text),
  });
  return kinds.shape({ toolCall: kinds.required(toolCall), tool: kinds.kind('a tool', isTool) });
}

/** Middleware can't inject calls or results: one without the other would break the history. */
function lackOfInjected(value: unknown): string | undefined {
  if (!Array.isArray(value)) return value === undefined ? undefined : '';
  const calls = (message: Message) => message.content.some((part) => part.type === 'tool-call');
  return lackOfMessages(value) ?? (value.some((one) => one.role === 'tool' || calls(one)) ? '' : undefined);
}

export function wrongAnswer(
  { hook, name }: { readonly hook: RuleHook; readonly name: string },
  answer: unknown,
  lacking: string,
): AlliumError {
  const { wanted } = SHAPES[hook];
  return new AlliumError(
    'INVALID_HOOK_RESULT',
    `${hook} of "${name}" returned ${shown(answer)}. Return ${wanted}.${lacking && ` Expected ${lacking}.`}`,
    { data: { hook, middleware: name } },
  );
}
