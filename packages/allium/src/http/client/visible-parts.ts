/** For `useChat` of AI SDK 5 and 6, which can't remove parts of a message. */

/**
 * The parts of a UI message without those that were taken back: because a model failed in the middle of its answer and was
 * asked again, or because `useChat` reads the message anew. AI SDK 7 removes them itself, so there this changes nothing.
 *
 * @example
 * visibleParts(message).map((part) => (part.type === 'text' ? part.text : ''));
 */
export function visibleParts<Part extends { readonly type: string }>(message: {
  readonly parts: readonly Part[];
}): readonly Part[] {
  if (!message.parts.some(({ type }) => type === 'data-reset')) return message.parts;
  let visible: Part[] = [];
  for (const part of message.parts) {
    if (part.type !== 'data-reset') visible.push(part);
    else if ((part as { data?: { all?: boolean } }).data?.all) visible = [];
    else
      visible = visible.slice(
        0,
        visible.findLastIndex(({ type }) => type === 'step-start'),
      );
  }
  return visible;
}
