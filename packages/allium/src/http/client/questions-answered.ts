/** For `useChat` of AI SDK 6 and 7: when to send answers. */

/**
 * Has somebody answered all approval requests of the last message? For `sendAutomaticallyWhen`. The AI SDK's own function
 * for it also waits until all other calls of the message have run, but in a run that waits they only run after the answers.
 *
 * @example
 * useChat({ sendAutomaticallyWhen: questionsAnswered });
 */
export function questionsAnswered({
  messages,
}: {
  readonly messages: readonly {
    readonly role: string;
    readonly parts: readonly { readonly type: string }[];
  }[];
}): boolean {
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return false;
  const states = last.parts.map((part) => (part as { readonly state?: unknown }).state);
  return states.includes('approval-responded') && !states.includes('approval-requested');
}
