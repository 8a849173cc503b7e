/** The maintained table of prices, which is loaded when it is first needed. */

import { AlliumError, type Usage } from '../../index.js';

export interface PriceTable {
  /** US dollars; undefined for a model that is not in the table. */
  costOf(
    model: { readonly provider: string; readonly id: string },
    usage: Usage,
    now: number,
  ): number | undefined;
}

/** The part of the package that is used. */
interface GenaiPrices {
  calcPrice(
    usage: Record<string, number>,
    modelId: string,
    options: { providerId: string; timestamp: Date },
  ): { readonly total_price: number } | null;
}

let loading: Promise<PriceTable> | undefined;

/** Loads once. After a failure, the next call tries again. */
export function loadTable(): Promise<PriceTable> {
  loading ??= load();
  loading.catch(() => {
    loading = undefined;
  });
  return loading;
}

async function load(): Promise<PriceTable> {
  let module: GenaiPrices;
  try {
    module = (await import('@pydantic/genai-prices')) as unknown as GenaiPrices;
  } catch (error) {
    throw new AlliumError(
      'MISSING_DEPENDENCY',
      'Prices come from the package "@pydantic/genai-prices", which cannot be loaded. Run `npm install @pydantic/genai-prices`, or pass `prices` to costTracking().',
      { cause: error, data: { dependency: '@pydantic/genai-prices' } },
    );
  }
  return {
    costOf({ provider, id }, usage, now) {
      const { inputTokens, outputTokens, cacheRead, cacheWrite } = usage;
      // There, the input includes everything, also what came from a cache or went into one.
      const counts = {
        input_tokens: inputTokens + cacheRead + cacheWrite,
        cache_read_tokens: cacheRead,
        cache_write_tokens: cacheWrite,
        output_tokens: outputTokens,
      };
      try {
        return module.calcPrice(counts, id, { providerId: provider, timestamp: new Date(now) })?.total_price;
      } catch {
        // Its rules for this model don't cover this usage: nobody knows the cost.
        return undefined;
      }
    },
  };
}
