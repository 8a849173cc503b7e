import { it, expect, describe } from 'vitest';
import { record } from 'allium/middleware/record';
import { replay } from 'allium/middleware/replay';
import { testMiddleware, checkMiddleware, chunks, toolCalls, text } from 'allium/testing';
testMiddleware(() => record({ to: [] }), { name: 'record', describe, it });
testMiddleware(() => replay({ from: [], onMiss: 'passthrough' }), { name: 'replay', describe, it });
const scenario = { name: 'what is on the cassette', input: 'The recorded question', answers: [chunks('Let ', 'me ', 'see.', { type: 'tool-call', id: 'a', name: 'kit_add', arguments: '{"a":40,"b":2}' }, { type: 'tool-call', id: 'b', name: 'kit_slow', arguments: '{"value":"x"}' }), text('42.')] };
const lines: string[] = [];
if(0) await checkMiddleware(() => record({ to: (line) => void lines.push(line) }), { scenarios: [scenario as any] });
it('n', () => console.log(lines.length));
const header = lines[0]!;
// every law makes its own; runs are numbered per instance
it('m', () => console.log(lines.filter(l => l.includes('The recorded question')).length));
