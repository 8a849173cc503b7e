/** Options for guardrails that cannot be made without any, by the name of their folder. */
export const guardrailArguments: Readonly<Record<string, object>> = {
  guardrail: { check: () => [] },
};
