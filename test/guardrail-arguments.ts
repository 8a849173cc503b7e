/** Options for guardrails that cannot be made without any, by the name of their folder. */
export const guardrailArguments: Readonly<Record<string, object>> = {
  guardrail: { check: () => [] },
  'llm-judge': { model: 'offline', policy: 'Be kind.' },
  topics: { deny: { politics: ['senator'] } },
  'tool-policy': { deny: ['nosuch'] },
  'max-input-tokens': { limit: 100_000 },
};
