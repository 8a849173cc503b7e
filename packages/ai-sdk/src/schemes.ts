/** The built-in schemes. Their packages are loaded on demand. */
import { AlliumError } from 'allium';
import type { AiSdkLanguageModel } from './language-model.js';
import type { ModelScheme, ResolveModelOptions } from './model-strings.js';

type Factory = (settings: object) => (id: string) => AiSdkLanguageModel;

interface Vendor {
  readonly scheme: string;
  readonly package: string;
  readonly load: () => Promise<Factory>;
  /** Variables that may hold the key, the usual one first. */
  readonly keys: readonly string[];
}

const VENDORS: readonly Vendor[] = [
  {
    scheme: 'openai',
    package: '@ai-sdk/openai',
    load: async () => (await import('@ai-sdk/openai')).createOpenAI as Factory,
    keys: ['OPENAI_API_KEY'],
  },
  {
    scheme: 'anthropic',
    package: '@ai-sdk/anthropic',
    load: async () => (await import('@ai-sdk/anthropic')).createAnthropic as Factory,
    keys: ['ANTHROPIC_API_KEY'],
  },
  {
    scheme: 'google',
    package: '@ai-sdk/google',
    load: async () => (await import('@ai-sdk/google')).createGoogleGenerativeAI as Factory,
    keys: ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY'],
  },
];

export const BUILT_IN_SCHEMES: readonly (readonly [string, ModelScheme])[] = [
  ...VENDORS.map((vendor) => [vendor.scheme, vendorScheme(vendor)] as const),
  ['openai-compatible', compatible],
];

function vendorScheme(vendor: Vendor): ModelScheme {
  return (id, options) => {
    const apiKey = options.apiKey ?? vendor.keys.map(env).find((value) => value);
    if (!apiKey) throw missingKey(vendor, id);
    return async () => {
      const create = await installed(vendor.package, vendor.load);
      return create({ apiKey, baseURL: options.baseUrl, ...common(options) })(id);
    };
  };
}

/** Servers that speak OpenAI's chat completions: Ollama, llama.cpp, vLLM, LM Studio and many more. */
function compatible(name: string, options: ResolveModelOptions): () => Promise<AiSdkLanguageModel> {
  const [, id = name, address] = /^(.*)@(https?:\/\/.*)$/s.exec(name) ?? [];
  const baseURL = address ?? options.baseUrl ?? env('OPENAI_COMPATIBLE_BASE_URL');
  if (!baseURL) {
    throw new AlliumError(
      'MISSING_BASE_URL',
      `No address for the model "openai-compatible/${name}". Write "openai-compatible/${name}@http://localhost:11434/v1", pass \`baseUrl\`, or set OPENAI_COMPATIBLE_BASE_URL.`,
    );
  }
  const apiKey = options.apiKey ?? env('OPENAI_COMPATIBLE_API_KEY');
  return async () => {
    const create = await installed('@ai-sdk/openai-compatible', async () => {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
      return createOpenAICompatible as unknown as Factory;
    });
    const settings = { name: options.provider ?? 'openai-compatible', baseURL, includeUsage: true };
    return create({
      ...settings,
      supportsStructuredOutputs: true,
      ...(apiKey && { apiKey }),
      ...common(options),
    })(id);
  };
}

function common({ headers, fetch }: ResolveModelOptions): object {
  return { ...(headers && { headers }), ...(fetch && { fetch }) };
}

/** Loads a package, or says how to install it. Any other failure is the package's own. */
export async function installed<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    const { code, message } = cause as { code?: unknown; message?: unknown };
    const missing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
    if (!missing || !String(message).includes(name)) throw cause;
    throw new AlliumError(
      'MISSING_DEPENDENCY',
      `The package ${name} is needed but not installed. Run: npm install ${name}`,
      { cause, data: { package: name } },
    );
  }
}

function missingKey({ scheme, keys }: Vendor, id: string): AlliumError {
  return new AlliumError(
    'MISSING_API_KEY',
    `No API key for the model "${scheme}/${id}". Set ${keys.join(' or ')}, or pass \`apiKey\`.`,
    { data: { variables: keys } },
  );
}

/** Also where there is no `process`. */
function env(name: string): string | undefined {
  return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name];
}
