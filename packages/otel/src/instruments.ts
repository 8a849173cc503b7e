/** The metrics of the conventions, with the buckets they ask for. */

import type { Attributes, Histogram, Meter, MeterProvider } from '@opentelemetry/api';
import type { Usage } from 'allium';
import { inputTokens, measured } from './conventions.js';

const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const TOKENS = [
  1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864,
];

export class Instruments {
  private readonly duration: Histogram;
  private readonly firstChunk: Histogram;
  private readonly tokens: Histogram;
  private readonly actions: ReturnType<Meter['createCounter']>;

  constructor(provider: MeterProvider) {
    const meter = provider.getMeter('@allium/otel');
    const seconds = (name: string, description: string): Histogram =>
      meter.createHistogram(name, {
        unit: 's',
        description,
        advice: { explicitBucketBoundaries: SECONDS },
      });
    this.duration = seconds('gen_ai.client.operation.duration', 'GenAI operation duration.');
    this.firstChunk = seconds(
      'gen_ai.client.operation.time_to_first_chunk',
      'Time to receive the first chunk of a streamed answer.',
    );
    this.tokens = meter.createHistogram('gen_ai.client.token.usage', {
      unit: '{token}',
      description: 'Number of input and output tokens used.',
      advice: { explicitBucketBoundaries: TOKENS },
    });
    this.actions = meter.createCounter('allium.middleware.actions', {
      description: 'What middleware changed, blocked, retried or answered.',
    });
  }

  took(seconds: number, about: Attributes): void {
    this.duration.record(seconds, measured(about));
  }

  firstChunkAfter(seconds: number, about: Attributes): void {
    this.firstChunk.record(seconds, measured(about));
  }

  used(usage: Usage, about: Attributes): void {
    const group = measured(about);
    this.tokens.record(inputTokens(usage), { ...group, 'gen_ai.token.type': 'input' });
    this.tokens.record(usage.outputTokens, { ...group, 'gen_ai.token.type': 'output' });
  }

  acted(by: string, action: string): void {
    this.actions.add(1, { 'allium.middleware.name': by, 'allium.middleware.action': action });
  }
}
