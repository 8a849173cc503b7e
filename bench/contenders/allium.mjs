/** Allium, through its public API only. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, tool, window } from 'allium';
import { weighCrowd } from '../work/crowd.mjs';
import { callingModel, DELTA, readyModel, talkingModel } from '../work/models.mjs';
import { readSlowly } from '../work/slow-reader.mjs';
import { DESCRIPTION, execute, executed, NAME, SCHEMA, SYSTEM_PROMPT } from '../work/tool.mjs';

export const what = '`agent.run()`, or `agent.stream()` read to its end with `for await` over every event';

const LAYERS = {
  plain: (i) => ({
    name: `plain-${i}`,
    wrapModel: (_ctx, next) => next(),
    wrapTool: (_ctx, next) => next(),
  }),
  async: (i) => ({
    name: `async-${i}`,
    wrapModel: async (_ctx, next) => {
      await next();
    },
    wrapTool: async (_ctx, next) => {
      await next();
    },
  }),
  pairs: (i) => ({
    name: `pair-${i}`,
    beforeModel() {},
    afterModel() {},
    beforeTool() {},
    afterTool() {},
  }),
};

const OBSERVERS = {
  none: [],
  instant: [async () => {}],
  asleep: [() => sleep(1000, undefined, { ref: false })],
};

function addTool(name) {
  return tool({ name, description: DESCRIPTION, input: SCHEMA, execute });
}

export function agentFor(model, turns, { tools = 1, middleware = [], ...options } = {}) {
  return new Agent({
    model,
    tools: Array.from({ length: tools }, (_, i) => addTool(i === 0 ? NAME : `${NAME}-${i}`)),
    middleware,
    systemPrompt: SYSTEM_PROMPT,
    limits: { turns: turns + 1 },
    ...options,
  });
}

function timedRuns(agent) {
  return async () => {
    const before = executed.count;
    await agent.run('go');
    return executed.count - before;
  };
}

export function readEvents(agent) {
  return async () => {
    let ended = 0;
    const stream = agent.stream('go');
    for await (const event of stream) if (event.type === 'tool_execution_end') ended += 1;
    await stream.result;
    return ended;
  };
}

/** Counts the characters too: a guard may join pieces while it holds them back, but may not lose any. */
export function readDeltas(agent, { joined = false } = {}) {
  return async () => {
    let seen = 0;
    let text = '';
    const stream = agent.stream('go');
    for await (const event of stream) {
      if (event.type !== 'message_update') continue;
      text += event.delta.text;
      seen += 1;
    }
    await stream.result;
    return joined ? text.length / DELTA.length : seen;
  };
}

export function turns({ turns, tools }) {
  return timedRuns(agentFor(callingModel(turns), turns, { tools }));
}

export function events({ turns }) {
  return readEvents(agentFor(callingModel(turns), turns));
}

export function layers({ turns, layers, kind }) {
  const middleware = Array.from({ length: layers }, (_, i) => LAYERS[kind](i));
  return timedRuns(agentFor(callingModel(turns), turns, { middleware }));
}

/** Finds what never comes, so that the cost is of looking and holding back, not of cutting. */
const guard = {
  name: 'guard',
  guard: {
    on: ['output'],
    hold: window(64),
    find(text) {
      const at = text.indexOf('sk-');
      return at < 0 ? [] : [{ start: at, end: at + 3 }];
    },
  },
};

export function deltas({ count, layers = 0, guarded = false, ready = false }) {
  const middleware = Array.from({ length: layers }, (_, i) => LAYERS.plain(i));
  if (guarded) middleware.push(guard);
  const model = ready ? readyModel(count) : talkingModel(count);
  return readDeltas(agentFor(model, 1, { middleware }), { joined: guarded });
}

export function concurrent({ runs, turns }) {
  const agent = agentFor(callingModel(turns), turns);
  return async () => {
    const before = executed.count;
    await Promise.all(Array.from({ length: runs }, () => agent.run('go')));
    return executed.count - before;
  };
}

export function crowd(params) {
  return weighCrowd((pause) => {
    const agent = agentFor(callingModel(params.turns, pause), params.turns);
    return () => agent.run('go');
  }, params);
}

export function slowConsumer({ count, bytes, ...pace }) {
  const agent = agentFor(
    talkingModel(count, (i) => String(i).padEnd(bytes)),
    1,
  );
  return readSlowly(agent.stream('go'), pace);
}

export function observed({ turns, latencyMs, observer }) {
  const wait = latencyMs === 0 ? undefined : () => sleep(latencyMs);
  const model = callingModel(turns, wait);
  return timedRuns(agentFor(model, turns, { observers: OBSERVERS[observer], onObserverError() {} }));
}
