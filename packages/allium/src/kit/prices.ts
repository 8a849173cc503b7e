/** Prices of models: the model's own, or what `priceOf` returns. */
import { AlliumError, invalidOption, isThenable, messageOf, shown } from '../kernel/lib/errors.js';
import { type Model, modelName, type Price, type PriceOf } from '../kernel/messages/model.js';

type Named = Pick<Model, 'provider' | 'id'>;

/** Makes a reader of prices: the model's own price, or what `priceOf` returns. It throws `INVALID_OPTION` for something that is not a price. */
export function priceReader(priceOf: PriceOf | undefined): PriceOf {
  if (priceOf !== undefined && typeof priceOf !== 'function')
    throw invalidOption('priceOf', 'a function from a model to its price', priceOf);
  return (model) => {
    const price = model.price ?? (priceOf && asked(priceOf, model)) ?? undefined;
    if (price !== undefined) checkPrice(model, price);
    return price;
  };
}

function asked(priceOf: PriceOf, model: Model): Price | undefined {
  try {
    return priceOf(model);
  } catch (cause) {
    // A sub-agent may have the reader of another agent, whose errors have codes already.
    if (cause instanceof AlliumError) throw cause;
    throw new AlliumError(
      'INVALID_OPTION',
      `Expected \`priceOf\` to return the price of ${modelName(model)}, or undefined if it is not known, but it threw: ${messageOf(cause)}`,
      { cause, data: { option: 'priceOf', model: modelName(model) } },
    );
  }
}

/** Checks that a price consists of numbers ≥ 0: with NaN, no limit would ever be reached. */
export function checkPrice(model: Named, price: Price): void {
  const { input, output, cacheRead = 0, cacheWrite = 0 } = price;
  if (isAmount(input) && isAmount(output) && isAmount(cacheRead) && isAmount(cacheWrite)) return;
  // Prices are not awaited, so a promise is refused, and its rejection ignored.
  const promised = isThenable(price);
  if (promised) price.then(undefined, ignore);
  if (promised || typeof price !== 'object') {
    const got = promised ? 'a promise' : shown(price);
    throw wrongPrice(model, 'price', 'an object with `input` and `output`', got);
  }
  const fields = Object.entries({ input, output, cacheRead, cacheWrite });
  const [field, value] = fields.find(([, amount]) => !isAmount(amount))!;
  throw wrongPrice(model, `price.${field}`, 'a number ≥ 0, in dollars per million tokens', shown(value));
}

function wrongPrice(model: Named, option: string, expected: string, got: string): AlliumError {
  return new AlliumError(
    'INVALID_OPTION',
    `Expected \`${option}\` of ${modelName(model)} to be ${expected}, got ${got}.`,
    { data: { option, model: modelName(model) } },
  );
}

function isAmount(value: unknown): boolean {
  return Number.isFinite(value) && (value as number) >= 0;
}

function ignore(): void {}
