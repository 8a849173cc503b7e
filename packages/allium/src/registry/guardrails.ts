/** The guardrails by name. They are loaded from `@allium/guardrails` when one is asked for. */
import { AlliumError } from '../kernel/lib/errors.js';
import type { Fields } from '../kernel/lib/shapes.js';
import type { JsonSchema } from '../kernel/messages/model.js';
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

/**
 * `adapt`: replaces names in options, such as a model's, with what they name. `schemaOf`: the schema of options, for
 * editors. Both are told what the fields of the options are.
 */
export function guardrailEntries(
  adapt: (options: Record<string, unknown>, fields: Fields, context: FactoryContext) => Promise<object>,
  schemaOf: (fields: Fields) => JsonSchema,
): readonly Omit<Entry<Middleware>, 'builtIn'>[] {
  return Object.entries(FACTORIES).map(([name, factory]) => ({
    name,
    optionsSchema: async () => {
      const fields = await fieldsOf(name);
      return fields ? schemaOf(fields) : { type: 'object' };
    },
    factory: async (options: never, context: FactoryContext) => {
      const loaded = await loadPackage(context, PACKAGE);
      const make = loaded[factory];
      if (typeof make !== 'function')
        throw new AlliumError(
          'MISSING_DEPENDENCY',
          `The installed ${PACKAGE} has no ${factory}(). Update it.`,
          {
            data: { package: PACKAGE },
          },
        );
      const { [name]: fields = {} } = (loaded.OPTIONS ?? {}) as Readonly<Record<string, Fields>>;
      return make(await adapt(options, fields, context)) as Middleware;
    },
  }));
}

/** The fields of a guardrail's options; undefined if the package is not installed. The factory checks them anyway. */
async function fieldsOf(name: string): Promise<Fields | undefined> {
  // Not a literal, because the package is not a dependency.
  const specifier: string = PACKAGE;
  const loaded = (await import(specifier).catch(() => ({}))) as {
    OPTIONS?: Readonly<Record<string, Fields>>;
  };
  return loaded.OPTIONS?.[name];
}
