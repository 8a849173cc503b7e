/** A model that does everything right, with some of it replaced: what every broken model here is made from. */

import type { Model, ModelPart, ModelRequest } from '../../../index.js';

const call = (id: string, city: string): ModelPart => ({
  type: 'tool-call',
  id,
  name: 'get_weather',
  arguments: `{"city":"${city}"}`,
});

/** The parts of a sound answer: calls if there are tools, thinking if it is asked for. */
export function soundParts({ tools, settings }: ModelRequest): ModelPart[] {
  const thinks = settings.provider?.test?.thinking === true;
  return [
    ...(thinks ? [{ type: 'thinking', text: 'Hm.' } as const] : []),
    ...(tools.length > 0
      ? [call('a', 'Oslo'), call('b', 'Rome')]
      : [{ type: 'text', text: 'Good ' } as const, { type: 'text', text: 'morning.' } as const]),
    {
      type: 'finish',
      reason: tools.length > 0 ? 'tool-calls' : 'stop',
      usage: { inputTokens: 10, outputTokens: 5 },
    },
  ];
}

/** Streams parts, and stops when it is told to. */
export async function* soundStream(
  parts: Iterable<ModelPart>,
  signal: AbortSignal,
): AsyncGenerator<ModelPart> {
  for (const part of parts) {
    await pause();
    signal.throwIfAborted();
    yield part;
  }
}

export function pause(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A sound model, except for what is replaced. */
export function broken(replaced: Partial<Model> = {}): Model {
  return {
    provider: 'test',
    id: 'broken',
    stream: (request, { signal }) => soundStream(soundParts(request), signal),
    ...replaced,
  };
}

/** A sound model that changes the parts of its answers. */
export function brokenParts(
  change: (parts: ModelPart[], request: ModelRequest) => Iterable<ModelPart>,
): Model {
  return broken({
    stream: (request, { signal }) => soundStream(change(soundParts(request), request), signal),
  });
}
