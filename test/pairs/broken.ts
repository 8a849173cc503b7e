/** Somebody for every law who breaks it: a law that nobody can break says nothing. */
import { assistantMessage, isControl, type Middleware } from 'allium';
import type { Ended, Observed } from './bench.js';
import type { Surroundings } from './box.js';

export interface Broken {
  readonly name: string;
  /** The law that is to name it. */
  readonly law: string;
  readonly make: (around: Surroundings) => Middleware;
  /** What the kernel lets no middleware break is broken in what is observed. */
  readonly tamper?: (observed: Observed) => Observed;
}

export const BROKEN: readonly Broken[] = [
  {
    name: 'reports every end as a success',
    law: 'a control signal ends the run as what it is',
    make: () => ({
      afterRun(ctx) {
        if (ctx.result) ctx.result = { ...ctx.result, status: 'done' };
      },
    }),
  },
  {
    name: 'asks the model again behind the back of the kernel',
    law: 'nothing is called again after a control signal',
    make: () => ({
      async wrapModel(ctx, next) {
        try {
          return await next();
        } catch (error) {
          const { messages, systemPrompt, settings } = ctx;
          const request = { messages, systemPrompt, settings, tools: [] };
          if (isControl(error))
            for await (const _ of ctx.model.stream(request, { signal: ctx.signal })) break;
          throw error;
        }
      },
    }),
  },
  {
    name: 'takes a stop for a failure',
    law: 'a control signal is no failure to anybody',
    make: () => ({
      async wrapTool(ctx, next) {
        try {
          return await next();
        } catch (error) {
          ctx.emit('retry', { error: String(error) });
          throw error;
        }
      },
    }),
  },
  {
    name: 'waits and does not look at the signal',
    law: 'an abort needs no time',
    make: ({ clock }) => ({
      async wrapTool(_, next) {
        try {
          return await next();
        } finally {
          await new Promise<void>((resolve) => clock.setTimer(resolve, 1000));
        }
      },
      async wrapModel(_, next) {
        try {
          return await next();
        } finally {
          await new Promise<void>((resolve) => clock.setTimer(resolve, 1000));
        }
      },
      async afterRun() {
        await new Promise<void>((resolve) => clock.setTimer(resolve, 1000));
      },
    }),
  },
  kernelBreaks('swaps two results', 'every call is answered once, in order', (run) => ({
    ...run,
    history: run.history.map((one, at) => (at === 2 ? run.history[3]! : at === 3 ? run.history[2]! : one)),
  })),
  kernelBreaks('loses a result', 'the history is valid', (run) => ({
    ...run,
    history: run.history.filter((_, at) => at !== 3),
  })),
  {
    name: 'leaves out what the user said',
    law: 'requests are valid',
    make: () => ({
      wrapModel: (ctx, next) => next({ messages: ctx.messages.filter(({ role }) => role !== 'user') }),
    }),
  },
  kernelBreaks('loses a delta', 'deltas since the last reset are the message', (run) => {
    const lost = run.events.findIndex(({ type }) => type === 'message_update');
    return { ...run, events: run.events.filter((_, at) => at !== lost) };
  }),
  kernelBreaks('forgets the end of a turn', 'starts and ends balance', (run) => ({
    ...run,
    events: run.events.filter(({ type }) => type !== 'turn_end'),
  })),
  {
    name: 'sets a timer and forgets it',
    law: 'no timer is left',
    make: ({ clock }) => ({
      wrapModel(_, next) {
        clock.setTimer(() => {}, 1e9);
        return next();
      },
    }),
  },
  {
    name: 'wraps errors of models',
    law: 'errors keep their identity',
    make: () => ({
      async wrapModel(_, next) {
        try {
          return await next();
        } catch (error) {
          throw isControl(error) ? error : new Error('Something went wrong.');
        }
      },
    }),
  },
  {
    name: 'wraps errors of tools',
    law: 'errors of tools keep their identity',
    make: () => ({
      async wrapTool(_, next) {
        try {
          return await next();
        } catch (error) {
          throw isControl(error) ? error : new Error('Something went wrong.');
        }
      },
    }),
  },
  {
    name: 'answers something else',
    law: 'what goes well ends well',
    make: () => ({
      beforeModel(ctx) {
        if (ctx.turn === 2) ctx.response = assistantMessage('Something else.');
      },
    }),
  },
  {
    name: 'counts every end that is not a success, and refuses after the first',
    law: 'the next run is as if nothing had happened',
    make: () => {
      let failures = 0;
      return {
        async wrapModel(_, next) {
          if (failures > 0) throw new Error('There were failures.');
          try {
            return await next();
          } catch (error) {
            failures++;
            throw error;
          }
        },
      };
    },
  },
  {
    name: 'keeps how a tool ended, whatever that was',
    law: 'the next run is as if nothing had happened',
    make: () => {
      const ends = new Map<string, Promise<never>>();
      return {
        wrapTool(ctx, next) {
          const end = ends.get(ctx.toolCall.name) ?? (next() as Promise<never>);
          ends.set(ctx.toolCall.name, end);
          return end;
        },
      };
    },
  },
];

function kernelBreaks(name: string, law: string, breaks: (run: Ended) => Ended): Broken {
  return {
    name: `${name}, were it the kernel`,
    law,
    make: () => ({ wrapModel: (_, next) => next() }),
    tamper: (observed) => ({ ...observed, second: breaks(observed.second) }),
  };
}
