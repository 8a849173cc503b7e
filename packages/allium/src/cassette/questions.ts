/** What a call asks, as it is compared and written, and its key. */
import {
  type Message,
  type ModelContext,
  modelName,
  requestKey,
  type ToolContext,
  toolCallsOf,
  toolSpec,
} from '../index.js';
import { guardedMessages, guardedPrompt, toolCallKey, toStoredJson } from '../kit/index.js';
import type { Cleaner } from './clean.js';
import type { PlainMessage, PlainRequest } from './format.js';

export interface AskedModel {
  readonly type: 'model';
  readonly key: string;
  readonly turn: number;
  readonly request: PlainRequest;
}

export interface AskedTool {
  readonly type: 'tool';
  readonly key: string;
  readonly turn: number;
  /** Which call of its message, from 0. */
  readonly call: number;
  readonly tool: string;
  readonly args: unknown;
}

export type Asked = AskedModel | AskedTool;

/** The key is made from the cleaned request: it doesn't depend on secrets and ids, and reveals nothing about them. */
export async function askedModel(ctx: ModelContext, clean: Cleaner): Promise<AskedModel> {
  const given = await guardedMessages(ctx);
  const { provider, id } = ctx.model;
  const messages = given.map((message) => clean.value(plainMessage(message, clean)));
  const systemPrompt = clean.text(await guardedPrompt(ctx));
  const tools = clean.value(ctx.tools.map(toolSpec));
  const settings = clean.value(ctx.settings);
  const key = requestKey({
    model: { provider, id },
    messages: messages as unknown as Message[],
    systemPrompt,
    tools,
    settings,
  });
  const request = { model: clean.text(modelName(ctx.model)), systemPrompt, tools, settings, messages };
  return { type: 'model', key, turn: ctx.turn, request };
}

export function askedTool(ctx: ToolContext, clean: Cleaner): AskedTool {
  const { toolCall, assistantMessage, turn } = ctx;
  const name = ctx.tool?.name ?? toolCall.name;
  const args = clean.value(toStoredJson(ctx.rawArgs) ?? null);
  const call = toolCallsOf(assistantMessage).findIndex(({ id }) => id === toolCall.id);
  return { type: 'tool', key: toolCallKey(name, args), turn, call, tool: name, args };
}

/** Ids of messages and calls are new in each run, and models aren't shown usage. */
function plainMessage(message: Message, clean: Cleaner): PlainMessage {
  const { role, content } = message;
  if (role === 'tool') {
    const { toolName, isError } = message;
    return { role, toolName, content, isError };
  }
  if (role === 'user') return { role, content };
  const parts = content.map((part) => {
    if (part.type !== 'tool-call') return part;
    const { id: _, metadata: __, ...call } = part;
    return { ...call, arguments: clean.json(part.arguments) };
  });
  return { role, content: parts };
}
