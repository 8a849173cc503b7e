/** A server's question to the person behind a run, and the person's decision as its answer. */

import type { JsonSchemaType, jsonSchemaValidator } from '@modelcontextprotocol/client';
import { AlliumError, type Decision, type Request } from 'allium';
import { canonicalJson, isRecord } from 'allium/kit';
import { sha256 } from './fingerprint.js';
import { isWebAddress } from './options.js';

export function elicitationRequest(server: string, tool: string, params: Record<string, unknown>): Request {
  const { message, requestedSchema, url } = params;
  if (url !== undefined && !isWebAddress(url))
    throw new AlliumError(
      'MCP_FAILED',
      'The server wants a person to visit something that is not a web address.',
    );
  return {
    title: `MCP server "${server}" asks: ${String(message)}`,
    details: {
      server,
      tool,
      message: String(message),
      ...(requestedSchema !== undefined && { schema: requestedSchema }),
      ...(url !== undefined && { url }),
    },
    key: sha256(canonicalJson({ message, requestedSchema, url: placeOf(url) })),
  };
}

/** Without what is different each time, such as the state of a sign-in. */
function placeOf(url: unknown): string | undefined {
  if (url === undefined) return undefined;
  const { origin, pathname } = new URL(String(url));
  return origin + pathname;
}

/**
 * `edit` brings the fields of the form, `respond` its only field or all of them as JSON, `approve` sends the form with its
 * defaults (or says that an address was visited), `reject` declines.
 */
export function elicitationAnswer(
  decision: Decision,
  { requestedSchema, url }: Record<string, unknown>,
  validator: jsonSchemaValidator,
): object {
  if (decision.type === 'reject') return { action: 'decline' };
  if (url !== undefined) return { action: 'accept' };
  const fields = fieldsOf(requestedSchema);
  if (decision.type === 'approve') return { action: 'accept', content: defaultsOf(fields) };
  const content = decision.type === 'edit' ? decision.args : parsed(decision.text, fields);
  if (!isRecord(content))
    throw new AlliumError(
      'MCP_ANSWER_INVALID',
      `The answer to a form must be an object with ${Object.keys(fields).join(', ') || 'its fields'}: answer with { type: 'edit', args }.`,
    );
  const { valid, errorMessage } = validator.getValidator(requestedSchema as JsonSchemaType)(content);
  if (!valid)
    throw new AlliumError('MCP_ANSWER_INVALID', `The answer does not fit the form: ${errorMessage}.`);
  return { action: 'accept', content };
}

type Fields = Record<string, { readonly type?: unknown; readonly default?: unknown }>;

function fieldsOf(schema: unknown): Fields {
  const { properties } = (isRecord(schema) ? schema : {}) as { properties?: unknown };
  return (isRecord(properties) ? properties : {}) as Fields;
}

function defaultsOf(fields: Fields): object {
  const given = Object.entries(fields).filter(([, field]) => field.default !== undefined);
  return Object.fromEntries(given.map(([name, field]) => [name, field.default]));
}

/** People answer a question with one field in plain words. */
function parsed(text: string, fields: Fields): unknown {
  const [only, ...others] = Object.entries(fields);
  if (only && others.length === 0) return { [only[0]]: typed(text, only[1].type) };
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** As the field wants it. What isn't a number, a yes or a no stays text, which then doesn't fit. */
function typed(text: string, type: unknown): unknown {
  const said = text.trim();
  if (type === 'number' || type === 'integer')
    return said === '' || Number.isNaN(Number(said)) ? text : Number(said);
  if (type !== 'boolean') return text;
  if (/^(?:true|yes|y|1)$/i.test(said)) return true;
  return /^(?:false|no|n|0)$/i.test(said) ? false : text;
}
