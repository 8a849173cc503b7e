/** Reads the stream of a model, whatever the model does. */
import { AlliumError, isThenable, shown } from './errors.js';
import { type Model, type ModelPart, type ModelRequest, modelName } from './model.js';
import type { Run } from './run.js';
import type { Scope } from './scope.js';

class CallOptions {
  constructor(private readonly scope: Scope) {}
  get signal(): AbortSignal {
    return this.scope.signal;
  }
}

/**
 * Reads a stream to its end, part by part, never faster than the consumer. An abort ends it even if the model
 * ignores its signal.
 */
export function readStream(
  model: Model,
  request: ModelRequest,
  scope: Scope,
  take: (part: ModelPart) => void,
  consumer: Pick<Run, 'pressure'> | undefined,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const reading: Reading = {
      open: true,
      iterator: iteratorOf(model.stream(request, new CallOptions(scope)), model),
    };
    const off = scope.onAbort((reason) => {
      if (!reading.open) return;
      reading.open = false;
      reject(reason);
      // Not at once: a stream that hears of the abort itself may just be ending.
      queueMicrotask(() => abandon(reading));
    });
    read(reading, model, take, consumer).then(
      () => {
        reading.open = false;
        off();
        resolve();
      },
      (error) => {
        reading.open = false;
        off();
        reject(error);
      },
    );
  });
}

/** A model that never really waits would keep timers from firing, and nobody could stop it. */
const FAIR_PARTS = 256;
const FAIR_MS = 20;

interface Reading {
  open: boolean;
  readonly iterator: ModelIterator;
}

async function read(
  reading: Reading,
  model: Model,
  take: (part: ModelPart) => void,
  consumer: Pick<Run, 'pressure'> | undefined,
): Promise<void> {
  const { iterator } = reading;
  let since = Date.now();
  for (let parts = 1; reading.open; parts++) {
    const step = await iterator.next();
    if (!reading.open) return;
    if (typeof step !== 'object' || step === null) {
      throw new AlliumError(
        'MODEL_STREAM_INVALID',
        `next() of ${modelName(model)} returned ${shown(step)}, which is not { done, value }.`,
      );
    }
    if (step.done) return;
    try {
      take(step.value);
    } catch (error) {
      abandon(reading);
      throw error;
    }
    const wait = consumer?.pressure();
    if (wait !== undefined) await wait;
    if (parts % FAIR_PARTS === 0 && Date.now() - since > FAIR_MS) {
      await breath();
      since = Date.now();
    }
  }
}

/** Lets timers and I/O have their turn. */
function breath(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === 'function') setImmediate(resolve);
    else setTimeout(resolve, 0);
  });
}

/** Nobody waits for what a stream does when it is told to stop, or hears of what that throws. */
function abandon({ iterator }: Reading): void {
  try {
    const wait = iterator.return?.();
    if (isThenable(wait)) wait.then(undefined, ignore);
  } catch {
    // As above.
  }
}

interface ModelIterator {
  next(): PromiseLike<IteratorResult<ModelPart>> | IteratorResult<ModelPart>;
  return?(): unknown;
}

function iteratorOf(stream: unknown, model: Model): ModelIterator {
  const source = stream as Partial<AsyncIterable<ModelPart> & Iterable<ModelPart>> | null | undefined;
  const iterator = source?.[Symbol.asyncIterator]?.() ?? source?.[Symbol.iterator]?.();
  if (typeof iterator?.next === 'function' && typeof stream === 'object') return iterator;
  if (isThenable(stream)) stream.then(undefined, ignore);
  throw new AlliumError(
    'MODEL_STREAM_INVALID',
    `stream() of ${modelName(model)} returned ${shown(stream)}, which cannot be iterated. Return an async iterable of parts; do not make stream() an async function.`,
  );
}

function ignore(): void {}
