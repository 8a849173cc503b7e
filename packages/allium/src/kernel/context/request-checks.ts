/** Freezes what middleware assign to a request, and checks it once, where the model is called. */

import { growsOnly } from '../journal/history.js';
import { AlliumError, attribute, invalidOption } from '../lib/errors.js';
import { copyOf } from '../lib/frozen-json.js';
import * as kinds from '../lib/kinds.js';
import { checkValue } from '../lib/shapes.js';
import { lackOfMessages } from '../messages/message-input.js';
import { deepFreeze, isFrozenMessage, type Message } from '../messages/messages.js';
import { MODEL, MODEL_SETTINGS } from '../messages/model.js';
import { TOOLS, type Tool } from '../protocol/tool.js';
import type { ModelContext } from './model-context.js';
import { authorOf } from './request-changes.js';
import type { RequestParts } from './run-port.js';

/**
 * A frozen copy of these messages: no inner layer can edit them, and a layer that calls inward again finds them unchanged.
 * Messages that aren't frozen are copied, so their author may keep editing. `before`: the frozen messages they replace;
 * most are the same.
 */
export function frozenMessages(
  messages: readonly Message[],
  before: readonly Message[] = [],
): readonly Message[] {
  // If it isn't a list, the model call refuses it. A history is frozen already.
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

/** If it isn't a message, the model call refuses it. */
function frozenMessage(message: Message): Message {
  const fine = !Array.isArray(message?.content) || isFrozenMessage(message);
  return fine ? message : deepFreeze(copyOf(message));
}

/** Throws if a layer assigned something invalid, and attributes the error to it. */
export function checkAssigned(ctx: ModelContext): void {
  const { _request, _run: run } = ctx;
  try {
    checkRequest(_request, run.request, ctx);
  } catch (error) {
    const author = authorOf(ctx, (request) => isWrong(request, run.request, ctx));
    if (author) attribute(error, author, ctx);
    throw error;
  }
}

/** Checks the parts that differ from `sound`. */
export function checkRequest(request: RequestParts, sound: RequestParts, ctx: ModelContext): void {
  const { messages, systemPrompt, tools, model, settings } = request;
  if (messages !== sound.messages) checkMessages(messages, ctx);
  if (systemPrompt !== sound.systemPrompt) checkValue('ctx.systemPrompt', kinds.text, systemPrompt);
  if (tools !== sound.tools) checkTools(tools);
  if (model !== sound.model) checkValue('ctx.model', MODEL, model);
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

/** Lists that were fine and can't have changed since: most middleware assign the same one in every turn. */
const checkedTools = new WeakSet<readonly Tool[]>();

function checkTools(tools: readonly Tool[]): void {
  if (checkedTools.has(tools)) return;
  checkValue('ctx.tools', TOOLS, tools);
  const names = new Set<string>();
  for (const { name } of tools) {
    if (names.has(name))
      throw new AlliumError(
        'DUPLICATE_TOOL',
        `Tool "${name}" is in ctx.tools twice, so a call could mean either. Rename one, or leave one out.`,
      );
    names.add(name);
  }
  if (Object.isFrozen(tools) && tools.every(Object.isFrozen)) checkedTools.add(tools);
}
