import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Agent } from 'allium';
import { chunks, scriptedModel, testMiddleware } from 'allium/testing';
import wordFilter from './index.js';

// The laws every middleware keeps, one test each.
testMiddleware(() => wordFilter({ words: ['zounds'] }), { name: 'word-filter', describe, it });

describe('word-filter', () => {
  it('takes words out, however the text is cut into pieces', async () => {
    const model = scriptedModel([chunks('Oh Dr', 'at, that is dra', 'tted. Dra', 't!')]);
    const { text } = await new Agent({ model, middleware: [wordFilter({ words: ['drat'] })] }).run('Well?');
    assert.equal(text, 'Oh ***, that is dratted. ***!');
  });

  it('takes words as they are, not as patterns', async () => {
    const filter = wordFilter({ words: ['a.b'], replacement: '-' });
    const { text } = await new Agent({ model: scriptedModel(['a.b axb']), middleware: [filter] }).run(
      'Well?',
    );
    assert.equal(text, '- axb');
  });
});
