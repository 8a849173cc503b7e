/** The guardrails by name. They are loaded from `@allium/guardrails` when one is asked for. */
import { AlliumError } from '../kernel/lib/errors.js';
import type { Middleware } from '../kernel/protocol/middleware.js';
import { type Entry, type FactoryContext, loadPackage } from './registry.js';

const PACKAGE = '@allium/guardrails';

/** Name in files → factory. */
const FACTORIES = {
  guardrail: 'guardrail',
  pii: 'pii',
  secrets: 'secrets',
  'content-filter': 'contentFilter',
  'prompt-injection': 'promptInjection',
  'tool-policy': 'toolPolicy',
  egress: 'egress',
  'system-prompt-leak': 'systemPromptLeak',
  topics: 'topics',
  'llm-judge': 'llmJudge',
  grounded: 'grounded',
  'max-input-tokens': 'maxInputTokens',
} as const;

/** `adapt`: puts what options name, such as a model, in the place of its name. */
export function guardrailEntries(
  adapt: (options: Record<string, unknown>, context: FactoryContext) => Promise<object>,
): readonly Omit<Entry<Middleware>, 'builtIn'>[] {
  return Object.entries(FACTORIES).map(([name, factory]) => ({
    name,
    // The factory judges its options.
    optionsSchema: { type: 'object' },
    factory: async (options: never, context: FactoryContext) => {
      const make = (await loadPackage(context, PACKAGE))[factory];
      if (typeof make !== 'function')
        throw new AlliumError(
          'MISSING_DEPENDENCY',
          `The installed ${PACKAGE} has no ${factory}(). Update it.`,
          {
            data: { package: PACKAGE },
          },
        );
      return make(await adapt(options, context)) as Middleware;
    },
  }));
}
