/** The law `no-mutation`. */

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
  statement:
    'A hook changes nothing that it is given: messages, arguments, settings, metadata and models belong to others.',
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
            `Expected no hook to change the objects it is given, but ${first}. Make a changed copy instead.`,
          );
        }

        // Without freezing, to catch code that swallows the error or is not in strict mode.
        const open = given(scenario);
        const lists: OpenList[] = [];
        const free = fresh(context, { settings: open.settings, outer: handingOut(lists) });
        const before = { ...given(scenario), model: { ...free.model } };
        await free.run(scenario, open);
        const after = { ...open, model: { ...free.model } };
        expectSame(after, before, 'the input, metadata, settings and model', { as: 'before the run' });
        for (const { tools, names } of lists)
          expectSame(
            tools.map(({ name }) => name),
            names,
            'the list of tools that an outer layer assigned',
          );
      });
    }
  },
};

interface OpenList {
  readonly tools: readonly Tool[];
  readonly names: readonly string[];
}

/** An outer layer that gives every model call its own list of tools, which is not frozen. */
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

/** Errors are passed from layer to layer too. The bench freezes those of tools. */
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

/** Freezes the plain values that a hook is given, but not contexts: hooks may assign to those. */
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
