// The examples come to their end on this machine, without a key.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

const KEYS = [
  'OPENAI_API_KEY',
  'ANTHROPIC_API_KEY',
  'GOOGLE_GENERATIVE_AI_API_KEY',
  'GEMINI_API_KEY',
  'OPENAI_COMPATIBLE_BASE_URL',
];

beforeEach(() => {
  for (const name of KEYS) vi.stubEnv(name, undefined);
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

async function printed(run: () => Promise<unknown>): Promise<string> {
  const lines: string[] = [];
  vi.spyOn(console, 'log').mockImplementation((...words) => void lines.push(words.join(' ')));
  await run();
  return lines.join('\n');
}

describe('examples/models', () => {
  it('any-model asks every provider the same question', async () => {
    const shown = await printed(() => import('../../../examples/models/any-model.ts'));
    expect(shown.match(/calls weather \{"city":"Bergen"\}/g)).toHaveLength(4);
    expect(shown.match(/says {2}Bergen has 9 degrees and rain\. Take a coat\./g)).toHaveLength(4);
  });

  it('two-vendors switches from one vendor to the other and back', async () => {
    const shown = await printed(() => import('../../../examples/models/two-vendors.ts'));
    const authors = [...shown.matchAll(/^ {2}(\w+)\//gm)].map(([, author]) => author);
    expect(authors).toEqual(['openai', 'anthropic', 'openai']);
  });

  it('thinking keeps its signature', async () => {
    const shown = await printed(() => import('../../../examples/models/thinking.ts'));
    expect(shown).toContain('(sealed)');
    expect(shown).toContain('Yes, I still know');
  });
});
