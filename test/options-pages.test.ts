// The tables of options in docs/reference say what the interfaces say, and every option has a description.

import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Agent, tool } from 'allium';
import { scriptedModel } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { optionsPages } from '../scripts/options-pages.mjs';
import { root } from '../scripts/repository.mjs';

describe.each(optionsPages())('$path', ({ path, text }) => {
  it('is what scripts/options-pages.mjs writes', () => {
    expect(readFileSync(path, 'utf8'), 'Run: node scripts/options-pages.mjs').toBe(text);
  });

  it('has tables in all places that are kept for one', () => {
    expect(text).not.toMatch(/^@/m);
    expect(text.match(/^\|---/gm)?.length, basename(path)).toBeGreaterThan(2);
  });
});

describe('docs/reference/options.md', () => {
  const page = optionsPages()[0]!.text;
  const section = (title: string) => page.split(/^## /m).find((part) => part.startsWith(title))!;
  /** What a wrong option is answered with names all that are right. */
  const takes = (make: () => unknown): string[] => {
    try {
      make();
    } catch (error) {
      return (error as { data: { allowed: string[] } }).data.allowed;
    }
    return [];
  };

  it('names every option that Agent and tool() take', () => {
    const model = scriptedModel([]);
    const ofAgent = takes(() => new Agent({ model, nonsense: 1 } as never));
    expect(ofAgent.length).toBeGreaterThan(20);
    for (const name of ofAgent) expect(section('`new Agent'), name).toContain(`\`${name}\``);
    const ofTool = takes(() => tool({ nonsense: 1 } as never));
    expect(ofTool.length).toBeGreaterThan(5);
    for (const name of ofTool) expect(section('`tool('), name).toContain(`| \`${name}\` |`);
  });

  it('names every option that run() and resume() take', async () => {
    const session = new Agent({ model: scriptedModel([]) }).session('s');
    const refused = (error: { data: { allowed: string[] } }) => error.data.allowed;
    const ofRun = (await session.run('hi', { nonsense: 1 } as never).catch(refused)) as string[];
    for (const name of ofRun) expect(section('`run('), name).toContain(`| \`${name}\` |`);
    const ofResume = (await session.resume({ nonsense: 1 } as never).catch(refused)) as string[];
    expect(ofResume.length).toBeGreaterThan(ofRun.length);
    for (const name of ofResume)
      expect(section('`run(') + section('`resume('), name).toContain(`| \`${name}\` |`);
  });
});

describe('the pages of names', () => {
  const pages = optionsPages();
  const page = (name: string) => pages.find(({ path }) => basename(path) === name)!.text;

  it.each(['', '/testing', '/http', '/http/client', '/json-schema', '/registry'])(
    'have everything that allium%s exports',
    async (entry) => {
      const chapter = page('names.md').split(`\n## \`allium${entry}\`\n`)[1]!.split('\n## ')[0]!;
      const names = Object.keys(await import(`allium${entry}`));
      const listed = [...chapter.matchAll(/^\| `(?:new )?(\w+)/gm)].map(([, name]) => name!);
      expect(listed.toSorted()).toEqual(names.toSorted());
    },
  );

  it('have everything that allium/kit exports', async () => {
    const names = Object.keys(await import('allium/kit'));
    expect(names.filter((name) => !new RegExp(`^\\| \`(new )?${name}\\b`, 'm').test(page('kit.md')))).toEqual(
      [],
    );
  });

  it('have a chapter for each file of the kit', () => {
    const index = readFileSync(join(root, 'packages/allium/src/kit/index.ts'), 'utf8');
    const texts = readFileSync(join(root, 'scripts/options-texts.mjs'), 'utf8');
    const files = [...index.matchAll(/^export \* from '\.\/(.*)\.js';$/gm)].map(
      ([, name]) => `@kit kit/${name}.ts`,
    );
    expect(files.length).toBeGreaterThan(10);
    for (const file of files) expect(texts).toContain(`\n${file}\n`);
  });
});
