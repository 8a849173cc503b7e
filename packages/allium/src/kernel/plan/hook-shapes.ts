/** What each decision hook may answer beside nothing: in words, and as a check. So too what a run layer may. */
import { AlliumError, hasOnly, isRecord, shown } from '../lib/errors.js';
import { unwritable } from '../lib/json-copy.js';
import { lackOf, lackOfMessages } from '../messages/message-input.js';
import type { Message, ToolCall } from '../messages/messages.js';
import type { ToolResultPatch, TurnAction } from '../protocol/middleware.js';
import { isListOf } from '../protocol/options.js';
import type { RuleHook } from '../protocol/plan.js';
import { STOPPING } from '../protocol/result.js';
import { isRequest } from '../protocol/store.js';
import { isResultContent, isTool } from '../protocol/tool.js';

export interface Shape {
  readonly wanted: string;
  readonly fine: (answer: any, given: unknown) => boolean;
  /** What is expected of a message or response in the answer, when that is what is wrong. */
  readonly lack?: (answer: any) => string | undefined;
}

const MESSAGES: Omit<Shape, 'wanted'> = {
  fine: (answer, given) =>
    answer === given || lackOfMessages(answer, given as readonly Message[]) === undefined,
  lack: (answer) => lackOfMessages(answer),
};

export const SHAPES: Record<RuleHook, Shape> = {
  acceptMessage: {
    wanted: 'a message, { block: true, reason }, or nothing',
    fine: (answer) => isBlock(answer) || lackOf(answer, 'user', 'assistant', 'tool') === undefined,
    lack: (answer) =>
      isRecord(answer) && 'role' in answer ? lackOf(answer, 'user', 'assistant', 'tool') : undefined,
  },
  transformContext: {
    wanted: 'a list of messages, or nothing',
    ...MESSAGES,
  },
  transformSystemPrompt: {
    wanted: 'the prompt as text, or nothing',
    fine: (answer) => typeof answer === 'string',
  },
  convertToLlm: {
    wanted: 'a list of messages, or nothing',
    ...MESSAGES,
  },
  resolveToolCall: {
    wanted:
      '{ toolCall: { name, arguments }, tool? } with arguments as JSON text and a tool made by tool(), or nothing',
    fine: (answer, given) =>
      hasOnly(answer, ['toolCall', 'tool']) &&
      isCall(answer.toolCall, given as ToolCall) &&
      (answer.tool === undefined || isTool(answer.tool)),
  },
  beforeToolCall: {
    wanted:
      '{ block: true, reason }, { args }, { ask: { title?, details?, timeoutMs?, onRequest? } }, { result }, or nothing',
    fine: (answer) =>
      isBlock(answer) ||
      (hasOnly(answer, ['args']) && 'args' in answer) ||
      (hasOnly(answer, ['result']) && answer.result !== undefined) ||
      (hasOnly(answer, ['ask']) && isRequest(answer.ask)),
  },
  afterToolCall: {
    wanted:
      '{ content?, details?, isError?, terminate? } with content as text or a list of text, image and file parts and details that can be written as JSON, or nothing',
    fine: isPatch,
  },
  afterModelResponse: {
    wanted:
      "{ response?, injectMessages?: messages, decision?: 'natural' | 'stop' | 'loop_to_model', why?: text }, or nothing",
    fine: isAction,
    lack: (answer) =>
      (answer?.response === undefined ? undefined : lackOf(answer.response, 'assistant')) ??
      lackOfList(answer?.injectMessages),
  },
  shouldStopAfterTurn: {
    wanted: 'true, false, or { reason, message } with a reason such as "stopped" and a message of text',
    fine: (answer) => typeof answer === 'boolean' || isStop(answer),
  },
  onRunEnd: {
    wanted: 'a list of user messages (or assistant messages without calls), or nothing',
    fine: isInjectable,
    lack: lackOfList,
  },
  compact: { wanted: 'nothing', fine: () => false },
};

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

function isBlock(value: any): boolean {
  if (!hasOnly(value, ['block', 'reason']) || value.block !== true) return false;
  return value.reason === undefined || typeof value.reason === 'string';
}

/** Messages of middleware stand alone: a call without its result, or a result without its call, would break the history. */
function isInjectable(value: unknown): boolean {
  return (
    isListOf<Message>(value, (item) => lackOf(item, 'user', 'assistant') === undefined) &&
    !value.some(({ content }: Message) => content.some((part) => part.type === 'tool-call'))
  );
}

/** With nothing in it that neither belongs to a call nor was in the one it is made of: `args` would be ignored. */
function isCall(value: any, given: ToolCall): boolean {
  if (typeof value?.name !== 'string' || typeof value.arguments !== 'string') return false;
  return hasOnly(value, ['type', 'id', 'name', 'arguments', 'metadata', ...Object.keys(given)]);
}

function isPatch(value: any): boolean {
  if (!hasOnly(value, ['content', 'details', 'isError', 'terminate'])) return false;
  const { content, details, isError, terminate } = value as ToolResultPatch;
  if (unwritable(details) !== undefined) return false;
  const fine = content === undefined || typeof content === 'string' || isResultContent(content);
  return fine && [isError, terminate].every((flag) => flag === undefined || typeof flag === 'boolean');
}

function isAction(value: any): boolean {
  if (!hasOnly(value, ['response', 'injectMessages', 'decision', 'why'])) return false;
  const { response, injectMessages, decision, why } = value as TurnAction;
  return (
    (response === undefined || lackOf(response, 'assistant') === undefined) &&
    (injectMessages === undefined || isInjectable(injectMessages)) &&
    (decision === undefined || ['natural', 'stop', 'loop_to_model'].includes(decision)) &&
    (why === undefined || typeof why === 'string')
  );
}

/** Suspension, errors and aborts are not for a hook to declare. */
function isStop(value: any): boolean {
  return (
    hasOnly(value, ['reason', 'message']) &&
    STOPPING.has(value.reason) &&
    (value.message === undefined || typeof value.message === 'string')
  );
}
