/** `@allium/guardrails`: ready-made guards for agents. */
export { type ContentFilterOptions, contentFilter } from './content-filter/index.js';
export { type EgressOptions, egress } from './egress/index.js';
export { type GroundedOptions, grounded, type Sources } from './grounded/index.js';
export { type Checked, type GuardrailOptions, guardrail } from './guardrail/index.js';
export { type LlmJudgeOptions, llmJudge } from './llm-judge/index.js';
export { type MaxInputTokensOptions, maxInputTokens } from './max-input-tokens/index.js';
export { OPTIONS } from './options.js';
export { type PiiOptions, pii, type Recognized } from './pii/index.js';
export { type PromptInjectionOptions, promptInjection } from './prompt-injection/index.js';
export { type SecretsOptions, secrets } from './secrets/index.js';
export { type SystemPromptLeakOptions, systemPromptLeak } from './system-prompt-leak/index.js';
export { type ToolPolicyOptions, type ToolRule, toolPolicy } from './tool-policy/index.js';
export { type Topics, type TopicsOptions, topics } from './topics/index.js';
