/** The options of all guardrails by name, as data: editors get their schema from it. */
import type { Fields } from 'allium/kit';
import { OPTIONS as contentFilter } from './content-filter/index.js';
import { OPTIONS as egress } from './egress/index.js';
import { OPTIONS as grounded } from './grounded/index.js';
import { OPTIONS as guardrail } from './guardrail/index.js';
import { OPTIONS as llmJudge } from './llm-judge/index.js';
import { OPTIONS as maxInputTokens } from './max-input-tokens/index.js';
import { OPTIONS as pii } from './pii/index.js';
import { OPTIONS as promptInjection } from './prompt-injection/index.js';
import { OPTIONS as secrets } from './secrets/index.js';
import { OPTIONS as systemPromptLeak } from './system-prompt-leak/index.js';
import { OPTIONS as toolPolicy } from './tool-policy/index.js';
import { OPTIONS as topics } from './topics/index.js';

export const OPTIONS: Readonly<Record<string, Fields>> = {
  'content-filter': contentFilter,
  egress,
  grounded,
  guardrail,
  'llm-judge': llmJudge,
  'max-input-tokens': maxInputTokens,
  pii,
  'prompt-injection': promptInjection,
  secrets,
  'system-prompt-leak': systemPromptLeak,
  'tool-policy': toolPolicy,
  topics,
};
