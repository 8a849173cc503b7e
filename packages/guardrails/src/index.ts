/** `@allium/guardrails`: ready-made guards for agents. */
export { type ContentFilterOptions, contentFilter } from './content-filter/index.js';
export { type Checked, type GuardrailOptions, guardrail } from './guardrail/index.js';
export { type PiiOptions, pii, type Recognized } from './pii/index.js';
export { type SecretsOptions, secrets } from './secrets/index.js';
