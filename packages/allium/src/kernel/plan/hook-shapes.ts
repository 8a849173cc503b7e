/** What each decision hook may return, as text for errors and as a check. */

import { isRequest } from '../context/request-shape.js';
import { AlliumError, isRecord, shown } from '../lib/errors.js';
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
  /** `given`: what the hook was called with. */
  readonly fits: (answer: any, given: unknown) => boolean;
  /** What a message in the answer lacks, if that is the problem. */
  readonly lack?: (answer: any) => string | undefined;
}

const BLOCK: Kind = kinds.shape({
  block: kinds.required(kinds.kind('true', (value) => value === true)),
  reason: kinds.text,
});

const ARGS: Kind = kinds.shape({ args: kinds.anything });
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
  injectMessages: kinds.kind('messages', isInjectable),
  decision: kinds.oneOf('natural', 'stop', 'loop_to_model'),
  why: kinds.text,
} satisfies Record<keyof TurnAction, Kind>);

/** A hook can't declare a suspension, error or abort. */
const STOP: Kind = kinds.shape({
  reason: kinds.required(kinds.kind('a reason', (value) => STOPPING.has(value))),
  message: kinds.text,
});

const MESSAGES: Shape = {
  wanted: 'a list of messages, or nothing',
  fits: (answer, given) =>
    answer === given || lackOfMessages(answer, given as readonly Message[]) === undefined,
  lack: (answer) => lackOfMessages(answer),
};

export const SHAPES: Record<RuleHook, Shape> = {
  acceptMessage: {
    wanted: 'a message, { block: true, reason }, or nothing',
    fits: (answer) => isOf(BLOCK, answer) || lackOf(answer, 'user', 'assistant', 'tool') === undefined,
    lack: (answer) =>
      isRecord(answer) && 'role' in answer ? lackOf(answer, 'user', 'assistant', 'tool') : undefined,
  },
  transformContext: MESSAGES,
  transformSystemPrompt: {
    wanted: 'the prompt as text, or nothing',
    fits: (answer) => typeof answer === 'string',
  },
  convertToLlm: MESSAGES,
  resolveToolCall: {
    wanted:
      '{ toolCall: { name, arguments }, tool? } with arguments as JSON text and a tool made by tool(), or nothing',
    fits: (answer, given) => isOf(resolved(given as ToolCall), answer),
  },
  beforeToolCall: {
    wanted:
      '{ block: true, reason }, { args }, { ask: { title?, details?, timeoutMs?, decisions?, remember?, onRequest? } }, { result }, or nothing',
    fits: (answer) =>
      isOf(BLOCK, answer) ||
      (isOf(ARGS, answer) && 'args' in answer) ||
      isOf(RESULT, answer) ||
      isOf(ASK, answer),
  },
  afterToolCall: {
    wanted:
      '{ content?, details?, isError?, terminate? } with content as text or a list of text, image and file parts and details that can be written as JSON, or nothing',
    fits: (answer) => isOf(PATCH, answer),
  },
  afterModelResponse: {
    wanted:
      "{ response?, injectMessages?: messages, decision?: 'natural' | 'stop' | 'loop_to_model', why?: text }, or nothing",
    fits: (answer) => isOf(ACTION, answer),
    lack: (answer) =>
      (answer?.response === undefined ? undefined : lackOf(answer.response, 'assistant')) ??
      lackOfList(answer?.injectMessages),
  },
  shouldStopAfterTurn: {
    wanted: 'true, false, or { reason, message } with a reason such as "stopped" and a message of text',
    fits: (answer) => typeof answer === 'boolean' || isOf(STOP, answer),
  },
  onRunEnd: {
    wanted: 'a list of user messages (or assistant messages without calls), or nothing',
    fits: isInjectable,
    lack: lackOfList,
  },
  compact: { wanted: 'nothing', fits: () => false },
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
function isInjectable(value: any): boolean {
  const alone = (message: Message | undefined) =>
    lackOf(message, 'user', 'assistant') === undefined &&
    !message!.content.some((part) => part.type === 'tool-call');
  // A copy, because `every` skips holes.
  return Array.isArray(value) && [...value].every(alone);
}

function lackOfList(list: unknown): string | undefined {
  return Array.isArray(list) ? lackOfMessages(list) : undefined;
}

export function wrongAnswer(
  of: { readonly hook: RuleHook; readonly name: string },
  answer: unknown,
): AlliumError {
  const { hook, name } = of;
  const { wanted, lack } = SHAPES[hook];
  const lacking = lack?.(answer);
  return new AlliumError(
    'INVALID_HOOK_RESULT',
    `${hook} of "${name}" returned ${shown(answer)}. Return ${wanted}.${lacking ? ` Expected ${lacking}.` : ''}`,
    { data: { hook, middleware: name } },
  );
}
