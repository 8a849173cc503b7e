/** What each law of models is given, and how it reads a stream. */

import { type Model, type ModelPart, type ModelRequest, type ModelResponse, modelName } from '../../index.js';
import { ResponseAssembler } from '../../kit/index.js';
import type { Law } from '../law-runner.js';

export interface Capability {
  /** The request, made anew each time. */
  readonly request: () => ModelRequest;
  /** Throws if the answer is wrong. */
  readonly expect: ((response: ModelResponse) => void) | undefined;
}

export interface ModelLawContext {
  readonly open: () => Model;
  /** A call that has to fail. */
  readonly failing: { readonly open: () => Model; readonly request: () => ModelRequest } | undefined;
  readonly text: Capability;
  readonly toolCall: Capability;
  readonly thinking: Capability | undefined;
  /** The same request gets the same answer. */
  readonly deterministic: boolean;
  /** Milliseconds an aborted stream may take to end. */
  readonly abortWithinMs: number;
  /** Milliseconds an answer may take. */
  readonly timeoutMs: number;
}

export type ModelCheck<Name extends string> = Law<Name, ModelLawContext>;

export function capabilities({ text, toolCall, thinking }: ModelLawContext): readonly Capability[] {
  return thinking ? [text, toolCall, thinking] : [text, toolCall];
}

/** Reads an answer to its end, whatever is in it. */
export function read({ open, timeoutMs }: ModelLawContext, request: ModelRequest): Promise<ModelPart[]> {
  return within(timeoutMs, 'The answer did not end', readAll(open(), request));
}

export async function readAll(model: Model, request: ModelRequest): Promise<ModelPart[]> {
  const parts: ModelPart[] = [];
  for await (const part of model.stream(request, { signal: new AbortController().signal })) parts.push(part);
  return parts;
}

/** The content of an answer. Wrong parts are left out: another law is about them. */
export function contentOf(parts: readonly ModelPart[]): ModelResponse['content'] {
  const assembler = new ResponseAssembler('the model');
  for (const part of parts) {
    try {
      if (part.type !== 'finish') assembler.add(part);
    } catch {
      // The law `valid-parts` reports it.
    }
  }
  return assembler.content as ModelResponse['content'];
}

/** The whole response. Throws what the kernel would throw. */
export function responseOf(parts: readonly ModelPart[], model: Model): ModelResponse {
  const assembler = new ResponseAssembler(modelName(model));
  for (const part of parts) assembler.add(part);
  return assembler.response();
}

export class Late extends Error {}

/** Settles like `work`, or rejects with Late. */
export async function within<T>(ms: number, late: string, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Late(`${late} within ${ms} ms.`)), ms);
  });
  // After the deadline nobody waits for it, and its error must not be unhandled.
  work.catch(() => {});
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
