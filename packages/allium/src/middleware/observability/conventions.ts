/**
 * The names of OpenTelemetry's conventions for generative AI (release 1.45), and which parts of a call they stand
 * for.
 */

import type {
  Model,
  ModelContext,
  ModelResponse,
  RunContext,
  ToolContext,
  TraceRecord,
  Usage,
} from '../../index.js';
import { callerName } from '../../kit/index.js';
import type { Attributes, AttributeValue, Instrument } from './port.js';

/** Names of providers that the conventions prescribe, by what the AI SDK calls them. */
const PROVIDERS: Readonly<Record<string, string>> = {
  'amazon-bedrock': 'aws.bedrock',
  azure: 'azure.ai.openai',
  bedrock: 'aws.bedrock',
  google: 'gcp.gemini',
  'google-vertex': 'gcp.vertex_ai',
  mistral: 'mistral_ai',
  moonshotai: 'moonshot_ai',
  vertex: 'gcp.vertex_ai',
  xai: 'x_ai',
};

function providerName({ provider }: Pick<Model, 'provider'>): string {
  return PROVIDERS[provider] ?? provider;
}

/** The name of the span and what is known when it begins: samplers see these. */
export type Subject = readonly [name: string, attributes: Attributes];

export function runSubject(ctx: RunContext): Subject {
  const { agent, runId, sessionId, tenant, depth } = ctx;
  return [
    `invoke_agent ${agent.name}`,
    known({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.provider.name': providerName(agent.model),
      'gen_ai.request.model': agent.model.id,
      'gen_ai.agent.name': agent.name,
      'gen_ai.conversation.id': sessionId,
      'allium.run.id': runId,
      'allium.depth': depth,
      'allium.tenant': tenant,
    }),
  ];
}

export function modelSubject(ctx: ModelContext): Subject {
  const { model, settings, sessionId, runId, turn, attempt, agent } = ctx;
  return [
    `chat ${model.id}`,
    known({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': providerName(model),
      'gen_ai.request.model': model.id,
      'gen_ai.agent.name': agent.name,
      'gen_ai.conversation.id': sessionId,
      'gen_ai.request.stream': true,
      'gen_ai.request.max_tokens': settings.maxOutputTokens,
      'gen_ai.request.temperature': settings.temperature,
      'gen_ai.request.top_p': settings.topP,
      'gen_ai.request.seed': settings.seed,
      'gen_ai.request.stop_sequences': settings.stopSequences && [...settings.stopSequences],
      'gen_ai.output.type': settings.responseSchema && 'json',
      'allium.run.id': runId,
      'allium.turn': turn,
      'allium.attempt': attempt,
      'allium.middleware.name': callerName(ctx),
    }),
  ];
}

export function toolSubject({ toolCall, tool, runId, turn, attempt }: ToolContext): Subject {
  return [
    `execute_tool ${toolCall.name}`,
    known({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': toolCall.name,
      'gen_ai.tool.call.id': toolCall.id,
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.description': tool?.description,
      'allium.run.id': runId,
      'allium.turn': turn,
      'allium.attempt': attempt,
    }),
  ];
}

/** What a middleware did, and where. */
export function actAttributes({ by, hook, turn, callId, toolName, attempt }: TraceRecord): Attributes {
  return known({
    'allium.middleware.name': by,
    'allium.middleware.hook': hook,
    'allium.turn': turn,
    'allium.attempt': attempt,
    'gen_ai.tool.name': toolName,
    'gen_ai.tool.call.id': callId,
  });
}

export function guardAttributes(verdict: TraceRecord['verdict']): Attributes {
  return verdict ? { 'allium.guard.kind': verdict.kind ?? '', 'allium.guard.action': verdict.action } : {};
}

/** What an answer says about itself, in the provider's own words if the adapter passes them on. */
export function answerAttributes(answer: ModelResponse): Attributes {
  const { response, finishReason, reasoningTokens } = toldByProvider(answer);
  return known({
    'gen_ai.response.finish_reasons': [finishReason ?? finishReasonOf(answer)],
    'gen_ai.response.id': response?.id,
    'gen_ai.response.model': response?.modelId ?? answer.model?.slice(answer.model.indexOf('/') + 1),
    'gen_ai.usage.reasoning.output_tokens': reasoningTokens,
    'allium.cache.hit': answer.metadata?.cacheHit === true ? true : undefined,
    ...(answer.usage && usageAttributes(answer.usage)),
  });
}

/** The conventions write these with underscores. */
export function finishReasonOf({ stopReason }: ModelResponse): string {
  return stopReason === 'tool-calls' ? 'tool_call' : stopReason.replace('-', '_');
}

/** The conventions include cached tokens in the input; `Usage` counts them separately. */
export function inputTokens({ inputTokens: fresh, cacheRead, cacheWrite }: Usage): number {
  return fresh + cacheRead + cacheWrite;
}

export function usageAttributes(usage: Usage): Attributes {
  const { outputTokens, cacheRead, cacheWrite } = usage;
  return known({
    'gen_ai.usage.input_tokens': inputTokens(usage),
    'gen_ai.usage.output_tokens': outputTokens,
    'gen_ai.usage.cache_read.input_tokens': cacheRead > 0 ? cacheRead : undefined,
    'gen_ai.usage.cache_creation.input_tokens': cacheWrite > 0 ? cacheWrite : undefined,
  });
}

/** The only attributes of metrics: with an id, every call would be its own series. */
const MEASURED = [
  'gen_ai.operation.name',
  'gen_ai.provider.name',
  'gen_ai.request.model',
  'gen_ai.response.model',
  'gen_ai.agent.name',
  'gen_ai.tool.name',
  'error.type',
];

export function measured(attributes: Attributes): Attributes {
  return known(Object.fromEntries(MEASURED.map((key) => [key, attributes[key]])));
}

/** What `fromAiSdk` keeps of an answer. Other adapters may keep the same. */
interface ToldByProvider {
  readonly response?: { readonly id?: string; readonly modelId?: string };
  readonly finishReason?: string;
  readonly reasoningTokens?: number;
}

function toldByProvider({ metadata }: ModelResponse): ToldByProvider {
  return (metadata?.aiSdk ?? {}) as ToldByProvider;
}

function known(attributes: Readonly<Record<string, AttributeValue | undefined>>): Attributes {
  const all = Object.entries(attributes).filter(([, value]) => value !== undefined);
  return Object.fromEntries(all) as Attributes;
}

// ── Metrics, with the units and buckets that the conventions ask for ─────────────────────────────────────────

const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const TOKENS = [
  1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864,
];

export const INSTRUMENTS = {
  'gen_ai.client.operation.duration': {
    unit: 's',
    description: 'GenAI operation duration.',
    buckets: SECONDS,
  },
  'gen_ai.client.operation.time_to_first_chunk': {
    unit: 's',
    description: 'Time to receive the first chunk of a streamed answer.',
    buckets: SECONDS,
  },
  'gen_ai.client.token.usage': {
    unit: '{token}',
    description: 'Number of input and output tokens used.',
    buckets: TOKENS,
  },
  'allium.runs': { unit: '{run}', description: 'Runs, by how they ended.' },
  'allium.model.calls': { unit: '{call}', description: 'Model calls, by how they ended.' },
  'allium.tool.calls': { unit: '{call}', description: 'Tool calls, by how they ended.' },
  'allium.middleware.actions': {
    unit: '{action}',
    description: 'What middleware changed, blocked, retried or answered.',
  },
} satisfies Readonly<Record<string, Instrument>>;
