/** Finds what is wrong with a line of a cassette: people edit them. */

import { type ModelPart, type ModelResponse, toolCallsOf, toolResult } from '../index.js';
import { describeValue, isToolContent, messageOf, ResponseAssembler } from '../kit/index.js';
import type { Cleaner } from './clean.js';
import type { Entry, StoredAnswer, StoredPart, StoredRequest, StoredVerdict, ToolEntry } from './format.js';
import { partsOfStored, textFieldOf } from './pieces.js';

/** Completes a sentence that begins with the line; undefined if `record` could have written it. */
export function flawOf(value: unknown): string | undefined {
  if (!isEntry(value)) return 'is neither a model nor a tool call';
  return value.type === 'model' ? flawOfAnswer(value.answer) : flawOfTool(value);
}

function isEntry(value: unknown): value is Entry {
  if (!isObject(value)) return false;
  const { type, key, run, request, answer, outcome, tool } = value;
  if (typeof key !== 'string' || typeof run !== 'number') return false;
  if (type === 'model')
    return Array.isArray((request as StoredRequest | undefined)?.messages) && isObject(answer);
  return type === 'tool' && typeof tool === 'string' && isObject(outcome);
}

function flawOfAnswer(answer: StoredAnswer): string | undefined {
  const flaw = flawOfEnd('answer', answer, ['finish', 'error', 'stop', 'feedback']);
  if (flaw || 'stop' in answer) return flaw;
  if ('feedback' in answer) return flawOfFeedback(answer.feedback);
  const { content = [] } = answer;
  if (!Array.isArray(content)) return `has \`answer.content\` that is not a list: ${describeValue(content)}`;
  for (const [i, part] of content.entries()) {
    const wrong = flawOfText(part, `answer.content[${i}]`);
    if (wrong) return wrong;
  }
  return flawOfStream(content, answer);
}

function flawOfFeedback(given: { readonly reason?: unknown; readonly by?: unknown }): string | undefined {
  if (typeof given.reason === 'string' && typeof given.by === 'string') return undefined;
  return `has \`answer.feedback\` that is not { reason, by }: ${describeValue(given)}`;
}

/** Texts are put together from pieces, so a stream would not show what is wrong with them. */
function flawOfText(part: StoredPart, name: string): string | undefined {
  if (!isObject(part)) return `has \`${name}\` that is not a part: ${describeValue(part)}`;
  const { cuts = [] } = part;
  const field = textFieldOf(part);
  if (field === undefined) return undefined;
  const text = part[field];
  if (typeof text !== 'string') return `has \`${name}.${field}\` that is not text: ${describeValue(text)}`;
  const inOrder = (cut: number, i: number) => cut >= (cuts[i - 1] ?? 0) && cut <= text.length;
  if (Array.isArray(cuts) && cuts.every(Number.isInteger) && cuts.every(inOrder)) return undefined;
  return `has \`${name}.cuts\` that are not places in its text, in order: ${describeValue(cuts)}. Leave them out to have it in one piece`;
}

/** Says what would be said about a model that answered like this. */
function flawOfStream(content: readonly StoredPart[], answer: StoredAnswer): string | undefined {
  const assembler = new ResponseAssembler('It');
  try {
    for (const part of partsOfStored(content, AS_IT_IS)) assembler.add(part);
    if (!('finish' in answer)) return undefined;
    const { finish: reason, usage } = answer;
    assembler.add({ type: 'finish', reason, usage } as ModelPart);
    const { content: made } = assembler.response();
    return flawOfVerdicts(answer.verdicts, made);
  } catch (error) {
    return `has \`answer\` that no model gives. ${sentence(error)}`;
  }
}

function flawOfVerdicts(given: unknown, content: ModelResponse['content']): string | undefined {
  const calls = toolCallsOf({ content });
  const isSound = (said: Partial<StoredVerdict> | null): boolean => {
    if (!isObject(said) || calls[said.call as number] === undefined) return false;
    const { deny, ask } = said as unknown as StoredVerdict;
    return deny ? typeof deny.reason === 'string' : typeof ask?.by === 'string' && isObject(ask.request);
  };
  if (given === undefined || (Array.isArray(given) && given.every(isSound))) return undefined;
  return `has \`answer.verdicts\` that are not about calls in it, each { call, deny } or { call, ask }: ${describeValue(given)}`;
}

function flawOfTool({ outcome, updates = [] }: ToolEntry): string | undefined {
  const isContent = (content: unknown) => typeof content === 'string' || isToolContent(content);
  if (!Array.isArray(updates) || !updates.every((update) => isContent(update?.content)))
    return `has \`updates\` that are not a list of content: ${describeValue(updates)}`;
  const flaw = flawOfEnd('outcome', outcome, ['result', 'error', 'stop', 'suspend']);
  if (flaw || !('result' in outcome)) return flaw;
  try {
    toolResult(outcome.result);
  } catch (error) {
    return `has \`outcome.result\` that no tool gives. ${sentence(error)}`;
  }
}

/** Every call ends in one of these ways. */
function flawOfEnd(name: string, given: object, ways: readonly string[]): string | undefined {
  const end = Object.entries(given).find(([way]) => ways.includes(way));
  if (!end) return `has \`${name}\` without one of ${ways.map((way) => `\`${way}\``).join(', ')}`;
  const [way, value] = end;
  if (way === 'finish' || isObject(value)) return undefined;
  return `has \`${name}.${way}\` that is not an object: ${describeValue(value)}`;
}

function sentence(error: unknown): string {
  return messageOf(error).replace(/\.$/, '');
}

const AS_IT_IS: Cleaner = { text: (text) => text, value: (value) => value, json: (text) => text };

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
