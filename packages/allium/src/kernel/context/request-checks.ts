/** What middleware assigned to a request: frozen at once, and checked where the model is called, so that it is checked once. */

import { growsOnly } from '../journal/history.js';
import { AlliumError, attribute, invalidOption } from '../lib/errors.js';
import { copyOf } from '../lib/frozen-json.js';
import * as kinds from '../lib/kinds.js';
import { checkValue } from '../lib/shapes.js';
import { lackOfMessages } from '../messages/message-input.js';
import { deepFreeze, isFrozenMessage, type Message } from '../messages/messages.js';
import { checkModel, MODEL_SETTINGS } from '../messages/model.js';
import { TOOLS, type Tool } from '../protocol/tool.js';
import type { ModelContext } from './model-context.js';
import { authorOf } from './request-changes.js';
import type { RequestParts } from './run-port.js';

/**
 * These messages as they are now, in a list of their own: nobody further in can edit them, and a layer that calls inward
 * again finds them as they were. What is not frozen is copied, and stays its maker's. `before`: those in whose place they
 * come, which are frozen; most are the same.
 */
export function frozenMessages(
  messages: readonly Message[],
  before: readonly Message[] = [],
): readonly Message[] {
  // What is no list is refused where the model is called. A history is frozen.
  if (!Array.isArray(messages) || growsOnly(messages)) return messages;
  const list: Message[] = [...messages];
  const shift = list.length - before.length;
  let changed = !Object.isFrozen(messages);
  for (let i = 0; i < list.length; i++) {
    const message = list[i]!;
    if ((i < before.length && message === before[i]) || (i >= shift && message === before[i - shift]))
      continue;
    list[i] = frozenMessage(message);
    changed ||= list[i] !== message;
  }
  return changed ? Object.freeze(list) : messages;
}

/** What is no message is refused where the model is called. */
function frozenMessage(message: Message): Message {
  const fine = !Array.isArray(message?.content) || isFrozenMessage(message);
  return fine ? message : deepFreeze(copyOf(message));
}

/** Throws for what a layer assigned wrongly, and notes which one it was. */
export function checkAssigned(ctx: ModelContext): void {
  const { _request, _run: run } = ctx;
  if (_request === run.request) return;
  try {
    checkRequest(_request, run.request, ctx);
  } catch (error) {
    const author = authorOf(ctx, (request) => isWrong(request, run.request, ctx));
    if (author) attribute(error, author, ctx);
    throw error;
  }
}

/** Checks the parts that are not those of `sound`. */
export function checkRequest(request: RequestParts, sound: RequestParts, ctx: ModelContext): void {
  const { messages, systemPrompt, tools, model, settings } = request;
  if (messages !== sound.messages) checkMessages(messages, ctx);
  if (systemPrompt !== sound.systemPrompt) checkValue('ctx.systemPrompt', kinds.text, systemPrompt);
  if (tools !== sound.tools) checkTools(tools);
  if (model !== sound.model) checkModel('ctx.model', model);
  if (settings !== sound.settings) checkValue('ctx.settings', MODEL_SETTINGS, settings);
}

function isWrong(request: RequestParts, sound: RequestParts, ctx: ModelContext): boolean {
  try {
    checkRequest(request, sound, ctx);
    return false;
  } catch {
    return true;
  }
}

function checkMessages(messages: readonly Message[] | undefined, ctx: ModelContext): void {
  if (messages === undefined) return;
  const wanted = lackOfMessages(messages, ctx._run.history.first(ctx._call.length));
  if (wanted) throw invalidOption('ctx.messages', wanted, messages);
}

function checkTools(tools: readonly Tool[]): void {
  checkValue('ctx.tools', TOOLS, tools);
  const names = new Set<string>();
  for (const { name } of tools) {
    if (names.has(name))
      throw new AlliumError(
        'DUPLICATE_TOOL',
        `Tool "${name}" is in ctx.tools twice: the model could mean either. Rename one, or leave one out.`,
      );
    names.add(name);
  }
}
