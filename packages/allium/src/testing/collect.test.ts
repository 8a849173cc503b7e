import { describe, expect, it } from 'vitest';
import { Agent } from '../index.js';
import { RunError } from '../kernel/protocol/result.js';
import { collect } from './collect.js';
import { chunks, failWith, scriptedModel } from './scripted-model.js';

describe('collect', () => {
  it('returns the events, their types, the result and the text on the screen', async () => {
    const agent = new Agent({ model: scriptedModel([chunks('Good ', 'morning.')]) });
    const { events, types, result, error, shown } = await collect(agent.stream('Hello.'));
    expect(types).toEqual([
      'agent_start',
      'message_start',
      'message_end',
      'turn_start',
      'message_start',
      'message_update',
      'message_update',
      'message_end',
      'turn_end',
      'agent_end',
    ]);
    expect(events.map(({ type }) => type)).toEqual(types);
    expect(result).toMatchObject({ status: 'done', text: 'Good morning.' });
    expect(error).toBeUndefined();
    expect([...shown]).toEqual([[result?.messages[1]?.id, 'Good morning.']]);
  });

  it('drops text that was reset', async () => {
    const model = scriptedModel([failWith(new Error('503'), 'Goo'), 'Hello.']);
    const again = { name: 'again', onError: () => 'retry' as const };
    const { types, shown } = await collect(new Agent({ model, middleware: [again] }).stream('Hello.'));
    expect(types).toContain('message_reset');
    expect([...shown.values()]).toEqual(['Hello.']);
  });

  it('returns the error of a failed run with its events', async () => {
    const cause = new Error('503');
    const agent = new Agent({ model: scriptedModel([failWith(cause)]) });
    const { types, result, error } = await collect(agent.stream('Hello.'));
    expect(error).toBeInstanceOf(RunError);
    expect(error?.cause).toBe(cause);
    expect(result).toBeUndefined();
    expect(types.at(-1)).toBe('agent_end');
  });

  it('says what to do if it is given the promise of run()', async () => {
    const agent = new Agent({ model: scriptedModel([failWith(new Error('503'))]) });
    await expect(collect(agent.run('Hello.') as never)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message:
        'Expected `stream` to be what agent.stream() returns, got a promise. Call stream() instead of run(), and do not await it.',
    });
  });

  it('throws if the run could not begin', async () => {
    const agent = new Agent({ model: scriptedModel(['Hi.', 'Hi.']) });
    const session = agent.session('one');
    const first = session.run('Hello.');
    await expect(collect(session.stream('Hello.'))).rejects.toMatchObject({ code: 'SESSION_BUSY' });
    expect((await first).status).toBe('done');
  });
});
