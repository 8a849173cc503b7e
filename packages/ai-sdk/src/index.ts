/** Every language model of the AI SDK as a model of an Allium agent. */
export { type AiSdkTool, type FromAiSdkToolsOptions, fromAiSdkTools } from './ai-sdk-tools.js';
export { type FromAiSdkOptions, fromAiSdk } from './from-ai-sdk.js';
export { fromLangChainTools, type LangChainTool } from './langchain-tools.js';
export type {
  AiSdkLanguageModel,
  AiSdkProviderTool,
  AiSdkReader,
  AiSdkStream,
} from './language-model.js';
export {
  type ModelScheme,
  type ResolveModelOptions,
  registerModelScheme,
  resolveModel,
} from './model-strings.js';
export type { AiSdkMetadata, CallMetadata } from './part-mapper.js';
export type { ProviderOptions } from './provider-options.js';
export {
  type AiSdkMiddleware,
  asLanguageModelMiddleware,
  type ToAiSdkOptions,
  toAiSdk,
} from './to-ai-sdk.js';
