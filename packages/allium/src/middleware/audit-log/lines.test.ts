import { type ModelResponse, type RunContext, type ToolContext, userMessage } from 'allium';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { answered, ended, finished } from './lines.js';

const text = fc.string({ unit: 'binary' });
const count = fc.oneof(fc.nat(), fc.constantFrom(0.5, 1e21, Number.POSITIVE_INFINITY, Number.NaN));
const usage = fc.record({
  inputTokens: count,
  outputTokens: count,
  cacheRead: count,
  cacheWrite: count,
  totalTokens: count,
});
const call = fc.record({ type: fc.constant('tool-call'), id: text, name: text, arguments: text });
const part = fc.oneof(fc.record({ type: fc.constant('text'), text }), call);

function texts(parts: readonly object[]): string {
  return parts.map((one) => ('text' in one ? one.text : '')).join('');
}

describe('lines written by hand', () => {
  it('are what JSON.stringify makes of the fields of a model call', () => {
    const response = fc.record(
      { content: fc.array(part), usage, stopReason: fc.constantFrom('stop', 'tool-calls'), model: text },
      { requiredKeys: ['content', 'stopReason'] },
    );
    fc.assert(
      fc.property(response, text, fc.nat(), fc.boolean(), (given, model, turn, content) => {
        const calls = given.content.flatMap((one) => ('arguments' in one ? [one] : []));
        const fields = {
          turn,
          model,
          messages: 3,
          outcome: 'ok',
          answeredBy: given.model,
          stopReason: given.stopReason,
          usage: given.usage,
          text: content ? texts(given.content) : undefined,
          calls: calls.map(({ name, arguments: args }) => (content ? { name, args } : { name })),
        };
        const said = answered(turn, model, 3, given as unknown as ModelResponse, content);
        expect(`{${said}}`).toBe(JSON.stringify(fields));
      }),
    );
  });

  it('are what JSON.stringify makes of the fields of a tool call', () => {
    const given = fc.record({
      toolCall: call,
      rawArgs: fc.option(fc.jsonValue(), { nil: undefined }),
      blocked: fc.boolean(),
      result: fc.record({ content: fc.array(part), isError: fc.boolean() }),
    });
    fc.assert(
      fc.property(given, fc.boolean(), (ctx, content) => {
        const { toolCall, rawArgs, blocked, result } = ctx;
        const args = rawArgs === undefined ? toolCall.arguments : JSON.stringify(rawArgs);
        const fields = {
          turn: 7,
          tool: toolCall.name,
          call: toolCall.id,
          args: content ? args : undefined,
          blocked,
          isError: result.isError,
          result: content ? texts(result.content) : undefined,
        };
        const said = finished({ ...ctx, turn: 7 } as unknown as ToolContext, content);
        expect(`{${said}}`).toBe(JSON.stringify(fields));
      }),
    );
  });

  it('are what JSON.stringify makes of the fields of a run', () => {
    const stop = fc.record(
      { reason: fc.constantFrom('final', 'stopped'), by: text },
      { requiredKeys: ['reason'] },
    );
    const result = fc.record({ status: fc.constantFrom('done', 'stopped'), stop, turns: fc.nat(), text });
    const given = fc.record(
      { agent: fc.record({ name: text }), tenant: text, usage, result },
      { requiredKeys: ['agent', 'usage'] },
    );
    fc.assert(
      fc.property(given, fc.array(text), fc.boolean(), (ctx, input, content) => {
        const fields = {
          agent: ctx.agent.name,
          tenant: ctx.tenant,
          input: content ? input : undefined,
          usage: ctx.usage,
          ...(ctx.result
            ? {
                outcome: ctx.result.status,
                reason: ctx.result.stop.reason,
                by: ctx.result.stop.by,
                turns: ctx.result.turns,
                text: content ? ctx.result.text : undefined,
              }
            : { outcome: 'error', error: 'Error' }),
        };
        const said = ended(
          ctx as unknown as RunContext,
          input.map((one) => userMessage(one)),
          content,
          () => ({ outcome: 'error', error: 'Error' }),
        );
        expect(`{${said}}`).toBe(JSON.stringify(fields));
      }),
    );
  });
});
