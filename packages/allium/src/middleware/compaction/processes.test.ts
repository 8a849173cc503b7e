import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Agent, type Store, textOf } from 'allium';
import { compaction } from 'allium/middleware/compaction';
import { fileStore } from 'allium/stores/file';
import { sqliteStore } from 'allium/stores/sqlite';
import { scriptedModel, text } from 'allium/testing';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

// Inside the workspace, for the child process to find the packages that are loaded on demand.
const root = path.resolve(
  import.meta.dirname,
  '../../../../../node_modules/.cache',
  `allium-compaction-${process.pid}`,
);
const sources = path.resolve(import.meta.dirname, '../..');

const CHILD = `
  import { Agent, compaction, fileStore, scriptedModel, textOf } from './parts.mjs';
  const model = scriptedModel(['ok']);
  const summaryModel = scriptedModel([]);
  const middleware = [compaction({ summaryModel, maxTokens: 500, keepTailTokens: 150 })];
  const store = fileStore({ dir: process.argv[2] });
  await new Agent({ model, store, middleware }).session('s').run('From another process.');
  console.log(JSON.stringify(model.requests[0].messages.map(textOf)));
`;

const PARTS = `
  export { Agent, textOf } from '${sources}/index.ts';
  export { compaction } from '${sources}/middleware/compaction/index.ts';
  export { fileStore } from '${sources}/stores/file/index.ts';
  export { scriptedModel } from '${sources}/testing/index.ts';
`;

beforeAll(() => fs.mkdirSync(root, { recursive: true }));
afterAll(() => fs.rmSync(root, { recursive: true, force: true }));

const tokenCounter = (said: string) => said.length;

function makeAgent(store: Store) {
  const model = scriptedModel([text('ok', { inputTokens: 0, outputTokens: 0 })], { repeat: true });
  const summaryModel = scriptedModel(['SUMMARY'], { repeat: true });
  const made = compaction({ summaryModel, maxTokens: 500, keepTailTokens: 150, tokenCounter });
  return { agent: new Agent({ model, store, middleware: [made] }), model, summaryModel };
}

async function compacted(store: Store): Promise<void> {
  const { agent, summaryModel } = makeAgent(store);
  for (let n = 1; n <= 5; n++) await agent.session('s').run(`${n}`.padEnd(96, 'x'));
  expect(summaryModel.requests).toHaveLength(1);
}

describe.each<[string, (name: string) => Store]>([
  ['file', (name) => fileStore({ dir: path.join(root, name) })],
  ['sqlite', (name) => sqliteStore({ path: path.join(root, `${name}.db`) })],
])('a summary in a %s store', (kind, open) => {
  it('is there for the next agent that opens the session, and so is every message', async () => {
    await compacted(open(`${kind}-next`));
    const { agent, model, summaryModel } = makeAgent(open(`${kind}-next`));
    await agent.session('s').run('Next.');
    expect(model.requests[0]!.messages.map(textOf)).toEqual([
      expect.stringContaining('SUMMARY'),
      'ok',
      '5'.padEnd(96, 'x'),
      'ok',
      'Next.',
    ]);
    expect(summaryModel.requests).toHaveLength(0);
    expect(await agent.session('s').messages()).toHaveLength(12);
  });
});

describe('a summary in another process', () => {
  it('stands in the first request', async () => {
    fs.writeFileSync(path.join(root, 'entry.mjs'), PARTS);
    const bundle = await rolldown({
      input: { parts: path.join(root, 'entry.mjs') },
      platform: 'node',
      external: ['gpt-tokenizer', 'tokenx'],
      resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
    });
    await bundle.write({ dir: root, entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' });
    await bundle.close();
    fs.writeFileSync(path.join(root, 'child.mjs'), CHILD);
    const dir = path.join(root, 'child');
    await compacted(fileStore({ dir }));
    const child = spawnSync(process.execPath, [path.join(root, 'child.mjs'), dir], { encoding: 'utf8' });
    expect(child.stderr).toBe('');
    const sent = JSON.parse(child.stdout);
    expect(sent).toHaveLength(5);
    expect(sent[0]).toContain('SUMMARY');
    expect(sent.at(-1)).toBe('From another process.');
  });
});
