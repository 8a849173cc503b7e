/** Asks models that can't stream: their whole answer, as a stream. */
import { type AiSdkLanguageModel, type AiSdkStream, isObject, type Loose } from './language-model.js';
import type { Answer } from './run-once.js';

/** A model of the AI SDK has both, though types of ours only ask for `doStream`. */
type Generating = AiSdkLanguageModel & { doGenerate?(options: object): PromiseLike<Loose> };

/** Streams; or generates, if the model can't stream and the caller wants the whole answer anyway. */
export async function streamOrGenerate(model: Generating, call: object): Promise<Answer> {
  try {
    return await model.doStream(call);
  } catch (error) {
    if (!cannotStream(error) || typeof model.doGenerate !== 'function') throw error;
    const { request, response, ...answer } = await model.doGenerate(call);
    return { stream: told({ response, ...answer }), request, ...(isObject(response) && { response }) };
  }
}

/** What providers throw, and mocks of `ai/test` that only have `doGenerate`. */
function cannotStream(error: unknown): boolean {
  const { name, message } = (isObject(error) ? error : {}) as { name?: unknown; message?: unknown };
  return name === 'AI_UnsupportedFunctionalityError' || message === 'Not implemented';
}

function told({ content, warnings, response, finishReason, usage, providerMetadata }: Loose): AiSdkStream {
  const parts: Loose[] = [{ type: 'stream-start', warnings: warnings ?? [] }];
  if (isObject(response)) {
    // Guards have not seen the body.
    const { body: _, headers: __, ...rest } = response;
    parts.push({ ...rest, type: 'response-metadata' });
  }
  for (const [i, part] of (Array.isArray(content) ? (content as Loose[]) : []).entries()) {
    const { type, text, ...rest } = part;
    if (type !== 'text' && type !== 'reasoning') {
      parts.push(part);
      continue;
    }
    const id = String(i);
    parts.push({ type: `${type}-start`, id, ...rest });
    if (text !== '') parts.push({ type: `${type}-delta`, id, delta: text });
    parts.push({ type: `${type}-end`, id, ...rest });
  }
  parts.push({
    type: 'finish',
    finishReason,
    usage,
    ...(isObject(providerMetadata) && { providerMetadata }),
  });
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}
