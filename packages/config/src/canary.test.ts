// A value from the environment is in no error, no log line and no explanation.

import { inspect } from 'node:util';
import { defineMiddleware } from 'allium';
import { registerMiddleware, registerModel, registerStore, registerTool } from 'allium/registry';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { project } from '../test/project.js';
import { createAgent, loadConfig } from './index.js';
import { redactor } from './redact.js';

const CANARIES = {
  plain: 'canary-7f3a9b',
  long: `canary-${'abcdefghij'.repeat(30)}`,
  strange: 'can"ary\\ with\nlines & ümlauts/?',
  short: 'c4y',
};

afterEach(() => vi.restoreAllMocks());

/** Everything a person may get to see of something. */
function shownForms(value: unknown): string {
  const parts = [inspect(value, { depth: 20, showHidden: true }), String(value), JSON.stringify(value) ?? ''];
  for (let error = value; error instanceof Error; error = error.cause)
    parts.push(error.message, error.stack ?? '', JSON.stringify({ ...error }), inspect(error, { depth: 20 }));
  return parts.join('\n');
}

function expectNone(text: string, canary: string): void {
  // The beginning is enough: messages cut long values off.
  const head = canary.slice(0, 12);
  for (const form of [canary, head, JSON.stringify(head).slice(1, -1), encodeURIComponent(head)])
    if (form.length > 5 || canary.length < 6) expect(text).not.toContain(form);
}

describe.each(Object.entries(CANARIES))('a %s canary', (_, canary) => {
  const load = (toml: string) =>
    loadConfig({ cwd: project({ 'allium.toml': toml }), env: { CANARY: canary } });

  it.each([
    ['a number', '[allium.limits]\nturns = "${CANARY}"'],
    ['a choice', '[allium]\ntoolExecution = "${CANARY}"'],
    ['a name', '[allium]\nname = "${CANARY}"'],
    ['a table', '[allium]\nlimits = "${CANARY}"'],
    ['a model', '[allium]\nmodel = "${CANARY}"'],
    ['a model after a slash', '[allium]\nmodel = "nobody/${CANARY}"'],
    ['an address', '[allium]\nmodel = { use = "openai-compatible/x@${CANARY}" }'],
    ['a store', '[allium]\nmodel = "offline"\nstore = "${CANARY}"'],
    ['a path', '[allium]\nmodel = "offline"\nstore = { use = "file", dir = "${CANARY}", fsync = "x" }'],
    [
      'an option of the box',
      '[allium]\nmodel = "offline"\n[allium.middleware]\nchain = [{ use = "retry", attempts = "${CANARY}" }]',
    ],
    [
      'an option nobody knows',
      '[allium]\nmodel = "offline"\n[allium.middleware]\nchain = [{ use = "retry", key = "${CANARY}" }]',
    ],
    [
      'an option under plugins',
      '[allium]\nmodel = "offline"\n[allium.middleware]\nchain = ["cache"]\n[allium.plugins.cache]\nscope = "${CANARY}"',
    ],
    [
      'a name in the chain',
      '[allium]\nmodel = "offline"\n[allium.middleware]\nchain = [{ use = "${CANARY}" }]',
    ],
    ['a file', '[allium]\nmodel = "offline"\n[allium.middleware]\nchain = ["./${CANARY}.mjs"]'],
    [
      'what a factory throws',
      '[allium]\nmodel = "offline"\n[allium.middleware]\nchain = [{ use = "leaks", key = "${CANARY}" }]',
    ],
    [
      'what a schema says',
      '[allium]\nmodel = "offline"\n[allium.middleware]\nchain = [{ use = "strict", key = "x ${CANARY}" }]',
    ],
    ['what a model throws', '[allium]\nmodel = { use = "leaky", key = "${CANARY}" }'],
    ['what a store throws', '[allium]\nmodel = "offline"\nstore = { use = "leaky", key = "${CANARY}" }'],
    ['what a tool throws', '[allium]\nmodel = "offline"\ntools = [{ use = "leaky", key = "${CANARY}" }]'],
    ['an observer', '[allium]\nmodel = "offline"\nobservers = ["${CANARY}"]'],
    ['a header', '[allium]\nmodel = { use = "openai/x", apiKey = "k", headers = "${CANARY}", nope = 1 }'],
  ])('is in no error about %s', async (_what, toml) => {
    const leak = ({ key }: { key: string }): never => {
      throw Object.assign(new TypeError(`bad key ${key}`, { cause: new Error(key) }), { key, data: { key } });
    };
    const strict = { type: 'object', properties: { key: { enum: ['a'] } } };
    const undo = [
      registerMiddleware('leaks', leak),
      registerMiddleware('strict', leak, { optionsSchema: strict }),
      registerModel('leaky', leak),
      registerStore('leaky', leak),
      registerTool('leaky', leak),
    ];
    const error = await load(toml)
      .then((loaded) => createAgent(loaded))
      .then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
    expect(error).toBeInstanceOf(Error);
    expectNone(shownForms(error), canary);
    for (const one of undo) one();
  });

  it('is in no log line, no explanation and nothing that is printed of a config', async () => {
    const lines: string[] = [];
    for (const method of ['log', 'info', 'debug', 'warn', 'error'] as const)
      vi.spyOn(console, method).mockImplementation((...args) => void lines.push(inspect(args)));
    const keeps = registerMiddleware('keeps', () => defineMiddleware({ name: 'keeps', beforeModel() {} }));
    const loaded = await load(
      '[allium]\nmodel = "offline"\nsystemPrompt = "${CANARY}"\ntenant = "${CANARY}"\n[allium.middleware]\nchain = [{ use = "console-logger", level = "debug" }, "stopwatch", { use = "keeps", key = "${CANARY}" }]',
    );
    const created = await createAgent(loaded);
    const { agent, close } = created;
    expect(agent.systemPrompt).toBe(canary);
    const explanation = agent.explain();
    const events: unknown[] = [];
    for await (const event of agent.stream('Hi')) events.push(event);
    await close();
    expect(lines.length).toBeGreaterThan(2);
    const seen = [
      ...lines,
      String(explanation),
      shownForms(explanation),
      shownForms(loaded),
      JSON.stringify(events),
    ];
    expectNone(seen.join('\n'), canary);
    expect(loaded.redact(`got ${canary}, ${JSON.stringify({ canary })}`)).not.toContain(canary);
    keeps();
  });
});

describe('redact', () => {
  it('takes out values, their JSON and their addresses, and long ones that were cut', () => {
    const redact = redactor(['abc/def ghi', 'x"y"zzzz', '80']);
    expect(redact('abc/def ghi')).toBe('***');
    expect(redact('?q=abc%2Fdef%20ghi&r')).toBe('?q=***&r');
    expect(redact('{"a":"x\\"y\\"zzzz"}')).toBe('{"a":"***"}');
    expect(redactor(['abcdefghijkl'])('got "abcdefg..." and abcdefx...')).toBe('got "***..." and abcdefx...');
    expect(redact('port 80, not 1980 or 80a')).toBe('port ***, not 1980 or 80a');
    expect(redactor([])('as it is')).toBe('as it is');
    expect(redactor([''])('as it is')).toBe('as it is');
  });

  it('leaves short values where they stand by chance, outside of errors', async () => {
    const dir = project({
      'allium.toml': `[allium]\nmodel = "offline"\n[allium.plugins.some]\nport = "\${PORT}"\nkey = "\${KEY}"\n`,
    });
    const loaded = await loadConfig({ cwd: dir, env: { PORT: '80', KEY: 'hunter2' } });
    expect(loaded.redact('hunter2 at port 80')).toBe('*** at port ***');
    expect(loaded.redactLong('hunter2 at port 80')).toBe('*** at port 80');
  });
});
