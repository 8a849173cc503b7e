/** A request as the options of a call to an AI SDK model. */
import type { Metadata, ModelRequest, ModelSettings, ToolSpec } from 'allium';
import { systemBlocksOf } from 'allium/kit';
import type { Loose } from './language-model.js';
import { type PromptOptions, toPrompt } from './prompt.js';
import { optionsFor, providerOptionsOf } from './provider-options.js';
import { isStrict, responseFormat } from './response-format.js';
import { toolSchema } from './tool-schema.js';

export interface CallOptions extends PromptOptions {
  readonly providerTools: ReadonlyMap<string, { readonly id: string; readonly args: unknown }>;
  /** Goes into the options of every call; the request wins. */
  readonly callOptions: Loose;
}

export function toCallOptions(
  { messages, systemPrompt, tools, settings }: ModelRequest,
  options: CallOptions,
  abortSignal: AbortSignal,
): Loose {
  const providerOptions = providerOptionsFor(settings, options);
  const offered = toolsOf(tools, options);
  return {
    ...options.callOptions,
    prompt: toPrompt(systemPrompt, messages, {
      ...options,
      systemOptions: systemOptions(settings, options),
      systemBlocks: blocksOf(systemPrompt, settings, options),
    }),
    ...plainSettings(settings),
    ...(settings.responseSchema && { responseFormat: responseFormat(settings.responseSchema) }),
    ...(offered.length > 0 && { tools: offered, toolChoice: toolChoice(settings.toolChoice) }),
    ...(providerOptions && { providerOptions }),
    abortSignal,
  };
}

/** The request wins over the options of every call. */
function providerOptionsFor(
  { provider, responseSchema }: ModelSettings,
  { callOptions, keys }: CallOptions,
): Record<string, Loose> | undefined {
  const lenient = responseSchema && !isStrict(responseSchema) ? optionsFor(LENIENT, keys) : undefined;
  return [callOptions.providerOptions, provider]
    .map((given) => optionsFor(given, keys))
    .reduce((all, more) => (all && more ? merged(all, more) : (all ?? more)), lenient);
}

/** For schemas that OpenAI and servers like it can follow but not enforce. */
const NOT_STRICT = Object.freeze({ strictJsonSchema: false });
const LENIENT = Object.freeze({ openai: NOT_STRICT, azure: NOT_STRICT, openaiCompatible: NOT_STRICT });

/** Options for all calls belong to the whole prompt, and so to its last block. */
function blocksOf(systemPrompt: string, settings: ModelSettings, options: CallOptions) {
  if (!settings.systemBlocks) return undefined;
  const usual = options.systemOptions ? { provider: options.systemOptions as Metadata } : undefined;
  const { systemMetadata = usual } = settings;
  return systemBlocksOf({
    systemPrompt,
    settings: { ...settings, ...(systemMetadata && { systemMetadata }) },
  });
}

/** The options of the request on top of those for all calls. */
function systemOptions({ systemMetadata }: ModelSettings, options: CallOptions): unknown {
  const own = optionsFor(providerOptionsOf(systemMetadata), options.keys);
  const usual = optionsFor(options.systemOptions, options.keys);
  return own && usual ? merged(usual, own) : (own ?? usual);
}

function merged(usual: Record<string, Loose>, own: Record<string, Loose>): Record<string, Loose> {
  const all = { ...usual };
  for (const [key, value] of Object.entries(own)) all[key] = { ...all[key], ...value };
  return all;
}

function plainSettings({ maxOutputTokens, temperature, topP, stopSequences, seed }: ModelSettings): Loose {
  return {
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(stopSequences && { stopSequences: [...stopSequences] }),
    ...(seed !== undefined && { seed }),
  };
}

/** If a provider defines a tool that we run under the same name, its definition is shown. */
function toolsOf(tools: readonly ToolSpec[], { version, providerTools }: CallOptions): Loose[] {
  const offered: Loose[] = [];
  for (const { name, description, inputSchema } of tools) {
    if (!providerTools.has(name))
      offered.push({ type: 'function', name, description, inputSchema: toolSchema(inputSchema) });
  }
  const type = version === 'v2' ? 'provider-defined' : 'provider';
  for (const [name, { id, args }] of providerTools) offered.push({ type, id, name, args });
  return offered;
}

function toolChoice(choice: ModelSettings['toolChoice'] = 'auto'): Loose {
  return typeof choice === 'object' ? { type: 'tool', toolName: choice.tool } : { type: choice };
}
