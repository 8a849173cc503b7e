/** What a hook is given is not changed: messages, arguments, settings, metadata and models belong to others. */

import {
  type Metadata,
  type Middleware,
  type ModelSettings,
  type Tool,
  type UserMessage,
  userMessage,
} from '../../index.js';
import { deepFreeze } from '../../kit/index.js';
import { expectSame } from '../same.js';
import { failWith } from '../scripted-model.js';
import { allScenarios, during, fresh, type MiddlewareCheck } from './context.js';
import { inputOf, type KitScenario } from './scenarios.js';
import { watched } from './watched.js';

export const noMutation: MiddlewareCheck<'no-mutation'> = {
  law: 'no-mutation',
  async check(context) {
    for (const scenario of [...allScenarios(context), FAILURE]) {
      await during(scenario.name, async () => {
        const attempts: string[] = [];
        const notice = (hook: string, error: unknown): void => {
          if (isRefusedMutation(error)) attempts.push(`${hook} tried (${error.message})`);
        };
        const frozen = deepFreeze(given(scenario));
        const prepare = (middleware: Middleware) => freezing(middleware, notice);
        const bench = fresh(context, { settings: frozen.settings, freeze: true, prepare });
        const { error } = await bench.run(scenario, frozen);
        if (error) notice('a stream transform', error.cause);
        if (attempts.length > 0) {
          const [first] = attempts;
          throw new Error(
            `Expected no hook to change the objects it is given, but ${first}. Replace them instead.`,
          );
        }

        // Code that swallows the refusal, or is not in strict mode, shows itself when nothing is frozen.
        const open = given(scenario);
        const lists: OpenList[] = [];
        const free = fresh(context, { settings: open.settings, outer: handingOut(lists) });
        const before = { ...given(scenario), model: { ...free.model } };
        await free.run(scenario, open);
        const after = { ...open, model: { ...free.model } };
        expectSame(after, before, 'the input, metadata, settings and model of a run as they were before it');
        for (const { tools, names } of lists)
          expectSame(
            tools.map(({ name }) => name),
            names,
            'the list of tools that a layer outside assigned as it was',
          );
      });
    }
  },
};

interface OpenList {
  readonly tools: readonly Tool[];
  readonly names: readonly string[];
}

/** Stands outside and gives every model call a list of tools that is not frozen, and still its own. */
function handingOut(lists: OpenList[]): Middleware {
  return {
    name: 'outer',
    beforeModel(ctx) {
      const tools = [...ctx.tools];
      lists.push({ tools, names: tools.map(({ name }) => name) });
      ctx.tools = tools;
    },
  };
}

/** An error is handed from one to the next as well; those of tools are frozen by the bench. */
const FAILURE: KitScenario = {
  name: 'a model that fails',
  answers: [failWith(Object.freeze(new Error('Broken.')), 'Good ')],
};

function given(scenario: KitScenario): {
  input: UserMessage;
  metadata: Metadata;
  settings: ModelSettings;
} {
  const { content } = structuredClone(inputOf(scenario));
  return {
    input: userMessage(content, { from: { nested: ['kit'] } }),
    metadata: { from: 'kit', nested: { list: [1, 2] } },
    settings: { stopSequences: ['STOP'], provider: { test: { nested: { flag: true } } } },
  };
}

/** Freezes the plain values a hook is handed; contexts are made to be assigned to. */
function freezing(middleware: Middleware, threw: (hook: string, error: unknown) => void): Middleware {
  return watched(middleware, { threw, called: (_, args) => args.forEach(deepFreeze) });
}

function isRefusedMutation(error: unknown): error is TypeError {
  return (
    error instanceof TypeError &&
    /read only property|is read-only|not extensible|Cannot (delete|redefine|define) property/.test(
      error.message,
    )
  );
}
