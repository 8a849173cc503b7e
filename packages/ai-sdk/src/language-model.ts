/** What this package needs to know about a language model of the AI SDK: its shape, not its package. */

/**
 * A language model of specification v2 (`ai` 5), v3 (`ai` 6), v4 (`ai` 7) or later. Any object of this shape will
 * do: what a provider package makes, what `wrapLanguageModel` makes of it, or a fake.
 */
export interface AiSdkLanguageModel {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  doStream(options: object): PromiseLike<{ readonly stream: AiSdkStream }>;
}

/** The part of `ReadableStream` that is used. */
export interface AiSdkStream {
  getReader(): AiSdkReader;
}

export interface AiSdkReader {
  read(): Promise<{ done: boolean; value?: unknown }>;
  cancel(reason?: unknown): Promise<void>;
}

/**
 * A tool that the provider defines, as its package makes it: `openai.tools.webSearch({})`. Packages type it as any
 * tool, so its `id`, such as `openai.web_search`, is checked when it is passed in.
 */
export type AiSdkProviderTool = object;

export type SpecVersion = 'v2' | 'v3' | 'v4';

/** The specification to speak: future versions are treated as the last one known. */
export function specVersionOf({ specificationVersion }: AiSdkLanguageModel): SpecVersion {
  return specificationVersion === 'v2' || specificationVersion === 'v3' ? specificationVersion : 'v4';
}

/** An object of the wire or the SDK whose members are checked one by one. */
export type Loose = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Loose {
  return typeof value === 'object' && value !== null;
}

/** A copy that can be journaled, without what JSON can't hold. */
export function jsonCopy(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value) ?? 'null');
}
