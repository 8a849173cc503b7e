/** What a person types in answer to a question of the run. */
import type { Decision, PendingRequest } from 'allium';
import { parsed } from '../view/ask.js';

export const HOW_TO_ANSWER =
  '[y]es, [a]lways in this session, [n]o and why, [e]dit {"new":"arguments"}, [l]ater';
export const HOW_TO_RESPOND = 'type the answer; [n]o and why; [l]ater';

/** A decision, `'later'`, or what is wrong with the answer. */
export function readAnswer(
  request: PendingRequest,
  line: string,
): Decision | 'later' | { readonly problem: string } {
  const { hash } = request;
  const [, word = '', rest = ''] = /^(\S*)\s*([\s\S]*)$/.exec(line.trim()) ?? [];
  switch (word.toLowerCase().replace(/[,.:!]+$/, '')) {
    case 'l':
    case 'later':
      return 'later';
    case 'n':
    case 'no':
      return { type: 'reject', hash, ...(rest !== '' && { reason: rest }) };
    case 'y':
    case 'yes':
      if (request.kind === 'ask') return { type: 'approve', hash };
      break;
    case 'a':
    case 'always':
      if (request.kind === 'ask') return { type: 'approve', hash, remember: 'tool' };
      break;
    case 'e':
    case 'edit': {
      if (request.kind !== 'ask') break;
      const args = parsed(rest);
      return args === undefined
        ? { problem: `That is not JSON: ${rest || '(nothing)'}` }
        : { type: 'edit', hash, args };
    }
  }
  if (request.kind === 'suspend' && line.trim() !== '') return { type: 'respond', hash, text: line.trim() };
  return { problem: `Please answer: ${request.kind === 'ask' ? HOW_TO_ANSWER : HOW_TO_RESPOND}` };
}
