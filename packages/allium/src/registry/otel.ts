/** OpenTelemetry by name. It is loaded from `@allium/otel` when it is asked for. */
import type { Middleware } from '../kernel/protocol/middleware.js';
import { type Entry, type FactoryContext, loadPackage } from './registry.js';

export const otelEntry: Omit<Entry<Middleware>, 'builtIn'> = {
  name: 'otel',
  optionsSchema: {
    type: 'object',
    properties: { content: { type: 'boolean' }, name: { type: 'string', minLength: 1 } },
    additionalProperties: false,
  },
  factory: async (options: object, context: FactoryContext) => {
    const { otel } = (await loadPackage(context, '@allium/otel')) as { otel(options: object): Middleware };
    return otel(options);
  },
};
