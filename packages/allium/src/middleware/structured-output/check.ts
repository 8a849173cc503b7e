/** Reads an answer: JSON that fits the schema, or what is wrong with it. */

import { AlliumError, type Context, type ModelResponse, type StandardSchema, textOf } from '../../index.js';
import { describeIssues, isRecord, messageOf, withOriginals } from '../../kit/index.js';
import { cut } from '../../texts/cut.js';

/** How much of a rejected answer an error message quotes. */
const QUOTED = 200;

export type Checked<Output> = { readonly value: Output } | { readonly problem: string };

export async function check<Output>(
  schema: StandardSchema<unknown, Output>,
  response: ModelResponse,
  wraps: boolean,
  ctx: Context,
): Promise<Checked<Output>> {
  const parsed = parse(textOf(response));
  if ('problem' in parsed) {
    const cut = response.stopReason === 'length' ? ' It was cut off at the output limit: write less.' : '';
    return { problem: `${parsed.problem}${cut}` };
  }
  const { '~standard': standard } = schema;
  const first = await standard.validate(parsed.value);
  // An answer in a fence has its wrapper still.
  const wrapper = first.issues && wraps && isWrapper(parsed.value) ? parsed.value : undefined;
  const result = wrapper ? await standard.validate(wrapper.value) : first;
  if (!result.issues) return { value: result.value };
  // A placeholder need not fit if its original does, which comes back later. The value stays as the model wrote it.
  const { value } = wrapper ?? parsed;
  const read = withOriginals(value, ctx);
  if (read !== value && !(await standard.validate(read)).issues) return { value: value as Output };
  return { problem: describeIssues(result.issues) };
}

function isWrapper(value: unknown): value is { readonly value: unknown } {
  return isRecord(value) && Object.keys(value).join() === 'value';
}

const FENCE = /^```[\w-]*\r?\n([\s\S]*?)\r?\n?```$/;

/** The JSON of an answer. Models like to put it into a fence; other text beside it is not accepted. */
function parse(text: string): { value: unknown } | { problem: string } {
  const trimmed = text.trim();
  const json = FENCE.exec(trimmed)?.[1] ?? trimmed;
  if (json === '') return { problem: 'The answer is empty. Expected one JSON value.' };
  try {
    return { value: JSON.parse(json) };
  } catch (error) {
    return { problem: `The answer is not valid JSON: ${messageOf(error)}.` };
  }
}

export function invalidOutput(response: ModelResponse, problem: string, repairs: number): AlliumError {
  const text = textOf(response);
  const quoted = cut(text, QUOTED);
  const tries = repairs === 0 ? '' : ` after ${repairs} ${repairs === 1 ? 'repair' : 'repairs'}`;
  return new AlliumError(
    'OUTPUT_INVALID',
    `The final answer does not fit the schema${tries}:\n${problem}\nThe last answer was: ${quoted}`,
    { data: { text, problem, repairs } },
  );
}
