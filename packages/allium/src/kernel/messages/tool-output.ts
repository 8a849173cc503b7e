/** Checks what a tool with an `output` schema returns. */

import { AlliumError } from '../lib/errors.js';
import { deepFreeze } from './messages.js';
import type { JsonSchema } from './model.js';
import { describeIssues, type SchemaResult, type StandardSchema } from './standard-schema.js';
import { isMadeResult, type ToolResult, toolResult, toToolResult } from './tool-result.js';

/** A tool, as far as it says what it returns. */
interface Promising {
  readonly name: string;
  readonly output?: StandardSchema | undefined;
}

/**
 * Makes the result of a tool with an `output` schema from what `execute` returned. The value that passed the schema
 * also goes into `details`. If it is a `toolResult()`, its details are checked, unless it is an error.
 */
export function checkedResult(tool: Promising, returned: unknown): ToolResult | Promise<ToolResult> {
  const made = isMadeResult(returned) ? returned : undefined;
  if (made?.isError) return made;
  const judged = (result: SchemaResult<unknown>): ToolResult => {
    if (result.issues) throw misfit(tool, describeIssues(result.issues));
    const { value } = result;
    return made
      ? toolResult({ ...made, details: value })
      : toolResult({ ...toToolResult(value), details: value });
  };
  const result = tool.output!['~standard'].validate(made ? made.details : returned);
  return result instanceof Promise ? result.then(judged) : judged(result);
}

function misfit(tool: Promising, problem: string): AlliumError {
  return new AlliumError(
    'TOOL_OUTPUT_INVALID',
    `"${tool.name}" returned something that does not fit its \`output\` schema:\n${problem}`,
    { data: { tool: tool.name, problem } },
  );
}

const outputSchemas = new WeakMap<StandardSchema, JsonSchema | 'none'>();

/** The JSON Schema of what a tool returns, if its schema can say it. */
export function outputSchemaOf({ output }: Pick<Promising, 'output'>): JsonSchema | undefined {
  if (!output) return undefined;
  const known = outputSchemas.get(output) ?? shownOutput(output);
  outputSchemas.set(output, known);
  return known === 'none' ? undefined : known;
}

/** A hint only, so a schema that cannot be expressed as JSON Schema is not shown. */
function shownOutput({ '~standard': { jsonSchema } }: StandardSchema): JsonSchema | 'none' {
  try {
    const { $schema: _, ...made } = (jsonSchema?.output ?? jsonSchema?.input)!({ target: 'draft-2020-12' });
    return deepFreeze(structuredClone(made));
  } catch {
    return 'none';
  }
}
