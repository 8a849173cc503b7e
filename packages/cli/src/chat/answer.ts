/** What a person types in answer to a question of the run. */
import type { Decision, PendingRequest } from 'allium';
import { parsed, takes } from '../view/ask.js';

const WAYS = [
  ['approve', '[y]es'],
  ['remember', '[a]lways in this session'],
  ['remember-same', '[s]ame arguments always'],
  ['reject', '[n]o and why'],
  ['edit', '[e]dit {"new":"arguments"}'],
] as const;

/** Which answers the question takes, and how to type them. */
export function howToAnswer(request: PendingRequest): string {
  if (request.kind === 'suspend' && takes(request, 'respond'))
    return `type the answer; ${takes(request, 'reject') ? '[n]o and why; ' : ''}[l]ater`;
  const ways = WAYS.flatMap(([answer, how]) => (takes(request, answer) ? how : []));
  return [...ways, ...(takes(request, 'respond') ? ['or type the answer'] : []), '[l]ater'].join(', ');
}

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
      if (takes(request, 'reject')) return { type: 'reject', hash, ...(rest !== '' && { reason: rest }) };
      break;
    case 'y':
    case 'yes':
      if (isOffered(request) && takes(request, 'approve')) return { type: 'approve', hash };
      break;
    case 'a':
    case 'always':
      if (takes(request, 'remember')) return { type: 'approve', hash, remember: 'tool' };
      break;
    case 's':
    case 'same':
      if (takes(request, 'remember-same')) return { type: 'approve', hash, remember: 'arguments' };
      break;
    case 'e':
    case 'edit': {
      if (!takes(request, 'edit')) break;
      const args = parsed(rest);
      return args === undefined
        ? { problem: `That is not JSON: ${rest || '(nothing)'}` }
        : { type: 'edit', hash, args };
    }
  }
  if (takes(request, 'respond') && line.trim() !== '') return { type: 'respond', hash, text: line.trim() };
  return { problem: `Please answer: ${howToAnswer(request)}` };
}

/** "yes" to a tool that takes any answer is that answer. */
function isOffered(request: PendingRequest): boolean {
  return request.kind === 'ask' || !takes(request, 'respond');
}
