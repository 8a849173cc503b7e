/** Reads what a tool with an `output` schema returned. */

import { invalidOption, isRecord } from '../kernel/lib/errors.js';
import type { ToolMessage } from '../kernel/messages/messages.js';
import type { Tool } from '../kernel/protocol/tool.js';

/**
 * What a call of this tool returned: the value that passed its `output` schema, as guards left it. Undefined if the
 * message is not a result of this tool, or is an error.
 *
 * @example
 * const forecast = toolOutput(weather, message)?.degrees;
 */
export function toolOutput<Result>(
  tool: Pick<Tool<unknown, unknown, Result>, 'name' | 'output'>,
  message: Pick<ToolMessage, 'role' | 'toolName' | 'isError' | 'details'> | { readonly role: string },
): Result | undefined {
  if (!isRecord(tool) || typeof tool.name !== 'string') throw invalidOption('tool', 'what tool() made', tool);
  if (!isRecord(message)) throw invalidOption('message', 'a message', message);
  if (!tool.output || !('toolName' in message) || message.toolName !== tool.name || message.isError)
    return undefined;
  return message.details as Result;
}
