// Keeps the documentation true: type-checks and runs its code fences, and checks what its pages point at.
//
// What a fence's info string may say, after `ts`, `js` (an ES module) or `cjs`:
//   (nothing)       it is type-checked (`ts`) and run, and must exit with 0
//   no-run          it is only type-checked
//   output          it is run, and prints exactly what the `text` fence after it shows
//   excerpt=PATH    it is neither: it quotes PATH (from the repository's root), and must stand there word for word

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { brokenReferences } from './doc-references.mjs';
import { importsOf, packageOf } from './imports.mjs';
import { fencesOf } from './markdown.mjs';
import { packedCli } from './packed-cli.mjs';
import { root as repository, tsc } from './repository.mjs';
import { runCommand } from './run-command.mjs';
import { record, tallyLine } from './tally.mjs';

/**
 * @import { EmptyProject } from './packed-project.mjs'
 * @import { Fence } from './markdown.mjs'
 */

/**
 * @typedef {object} Snippet A fence of code, on its way through the checks.
 * @property {string} page
 * @property {Fence} fence
 * @property {string} [expected] What it must print.
 * @property {string} file Where it lies in the project, below `fences/`.
 */

/** @typedef {{ pages: number, snippets: number, ran: number, failures: string[] }} DocsReport */

/** Language of a fence → extension of the file it becomes. */
const extensions = new Map(
  Object.entries({ ts: 'ts', typescript: 'ts', js: 'js', javascript: 'js', mjs: 'js', cjs: 'cjs' }),
);

/**
 * @param {object} [options]
 * @param {string} [options.root] The repository whose pages are checked.
 * @param {() => Promise<EmptyProject>} [options.project] Makes the project the fences run in. Default: one with the packed packages.
 * @param {number} [options.timeout] Milliseconds a fence may run.
 * @returns {Promise<DocsReport>}
 */
export async function checkDocs({ root = repository, project: make = packedCli, timeout = 120_000 } = {}) {
  const pages = docPages(root);
  const failures = pages.flatMap((page) => brokenReferences(root, page));
  const all = pages.flatMap((page) => snippetsOf(root, page, failures));
  const snippets = all.filter(({ fence }) => !excerptOf(fence));
  for (const snippet of all) checkExcerpt(root, snippet, failures);

  let ran = 0;
  if (snippets.length > 0) {
    const project = await make();
    try {
      const broken = await typeCheck(project, snippets, failures);
      const runnable = snippets.filter(
        (snippet) => !broken.has(snippet) && !snippet.fence.flags.includes('no-run'),
      );
      ran = runnable.length;
      await eachOf(runnable, 2, async (snippet) => {
        const problem = await runSnippet(project, snippet, timeout);
        if (problem) failures.push(problem);
      });
    } finally {
      project.remove();
    }
  }
  return { pages: pages.length, snippets: all.length, ran, failures };
}

/** The pages whose every promise is checked: those at the root, in docs/, and the READMEs of packages and of what is in them. */
function docPages(/** @type {string} */ root) {
  const top = readdirSync(root).filter((name) => name.endsWith('.md'));
  const docs = below(join(root, 'docs')).map((path) => `docs/${path}`);
  const packages = existsSync(join(root, 'packages')) ? readdirSync(join(root, 'packages')) : [];
  const readmes = packages.flatMap((name) => [
    ...(existsSync(join(root, 'packages', name, 'README.md')) ? [`packages/${name}/README.md`] : []),
    ...below(join(root, 'packages', name, 'src')).map((path) => `packages/${name}/src/${path}`),
  ]);
  return [...top, ...docs, ...readmes].sort();
}

function below(/** @type {string} */ folder) {
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return files.filter((name) => name.endsWith('.md')).map((name) => name.replaceAll('\\', '/'));
}

/** @returns {Snippet[]} The page's fences of code; those it cannot make sense of go to `failures`. */
function snippetsOf(
  /** @type {string} */ root,
  /** @type {string} */ page,
  /** @type {string[]} */ failures,
) {
  const fences = fencesOf(readFileSync(join(root, page), 'utf8'));
  return fences.flatMap((fence, index) => {
    const extension = extensions.get(fence.language);
    if (!extension) return [];
    const unknown = fence.flags.find((flag) => !/^(no-run|output|excerpt=.+)$/.test(flag));
    if (unknown) {
      failures.push(
        `${page}:${fence.line} has a fence marked \`${unknown}\`: expected no-run, output or excerpt=PATH.`,
      );
      return [];
    }
    const next = fences[index + 1];
    if (fence.flags.includes('output') && next?.language !== 'text') {
      failures.push(
        `${page}:${fence.line} has a fence marked \`output\`, but no \`text\` fence with that output after it.`,
      );
      return [];
    }
    const expected = fence.flags.includes('output') ? next?.code : undefined;
    return [{ page, fence, expected, file: `${page}.L${fence.line}.${extension}` }];
  });
}

function excerptOf(/** @type {Fence} */ { flags }) {
  return flags.find((flag) => flag.startsWith('excerpt='))?.slice('excerpt='.length);
}

function checkExcerpt(
  /** @type {string} */ root,
  /** @type {Snippet} */ { page, fence },
  /** @type {string[]} */ failures,
) {
  const path = excerptOf(fence);
  if (!path) return;
  const file = join(root, path);
  if (!existsSync(file)) failures.push(`${page}:${fence.line} quotes ${path}, which does not exist.`);
  else if (!withoutIndent(readFileSync(file, 'utf8')).includes(withoutIndent(fence.code))) {
    failures.push(`${page}:${fence.line} quotes ${path}, but these lines do not stand there.`);
  }
}

function withoutIndent(/** @type {string} */ code) {
  return code.replace(/^\s+|\s+$/gm, '');
}

/**
 * Writes all snippets into the project and type-checks them in one compiler run, which also emits them.
 *
 * @param {EmptyProject} project
 * @param {readonly Snippet[]} snippets
 * @param {string[]} failures
 * @returns {Promise<Set<Snippet>>} Those with an error.
 */
async function typeCheck(project, snippets, failures) {
  /** @type {Set<Snippet>} */
  const broken = new Set();
  for (const snippet of snippets) {
    const problem = linkImports(project, snippet);
    if (problem) {
      failures.push(problem);
      broken.add(snippet);
      continue;
    }
    const path = join(project.folder, 'fences', snippet.file);
    mkdirSync(dirname(path), { recursive: true });
    // Blank lines in front, so that the compiler and node count the page's own lines.
    writeFileSync(path, `${'\n'.repeat(snippet.fence.line - 1)}${snippet.fence.code}\n`);
  }
  if (!snippets.some((snippet) => snippet.file.endsWith('.ts') && !broken.has(snippet))) return broken;

  project.link('@types/node');
  writeFileSync(join(project.folder, 'tsconfig.json'), JSON.stringify(fenceConfig));
  const { code, stdout, stderr } = await runCommand(process.execPath, [tsc, '-p', '.', '--pretty', 'false'], {
    cwd: project.folder,
  });
  let known = 0;
  for (const message of stdout.split(/\n(?=\S)/).filter(Boolean)) {
    const at = /^fences\/(.+\.L\d+\.ts)\((\d+),(\d+)\): ([\s\S]*)$/.exec(message.trimEnd());
    const snippet = snippets.find(({ file }) => file === at?.[1]);
    failures.push(at && snippet ? `${snippet.page}:${at[2]}:${at[3]} ${at[4]}` : message.trimEnd());
    if (snippet) broken.add(snippet);
    known++;
  }
  if (code !== 0 && known === 0) failures.push(`The compiler failed on the fences: ${stderr}`);
  return broken;
}

/** Strict, and such that node can also run the code by stripping its types: what we show works however it is run. */
const fenceConfig = {
  compilerOptions: {
    target: 'es2023',
    lib: ['es2023'],
    module: 'nodenext',
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    verbatimModuleSyntax: true,
    erasableSyntaxOnly: true,
    moduleDetection: 'force',
    skipLibCheck: true,
    types: ['node'],
    rootDir: 'fences',
    outDir: 'out',
    inlineSourceMap: true,
    inlineSources: true,
  },
  include: ['fences/**/*.ts'],
};

/** @returns {string | undefined} */
function linkImports(/** @type {EmptyProject} */ project, /** @type {Snippet} */ { page, fence, file }) {
  for (const { specifier, line } of importsIn(file, fence.code)) {
    if (!specifier || specifier.startsWith('.') || isBuiltin(specifier)) continue;
    if (!project.link(packageOf(specifier))) {
      return `${page}:${fence.line + line - 1} imports ${specifier}, which is not among the repository's devDependencies.`;
    }
  }
  return undefined;
}

function importsIn(/** @type {string} */ file, /** @type {string} */ code) {
  try {
    return importsOf(file, code);
  } catch {
    return []; // It does not parse; the compiler, or node, says so better and with the page's line.
  }
}

/** @returns {Promise<string | undefined>} What went wrong. */
async function runSnippet(
  /** @type {EmptyProject} */ project,
  /** @type {Snippet} */ { page, fence, expected, file },
  /** @type {number} */ timeout,
) {
  const program = file.endsWith('.ts') ? join('out', file.replace(/ts$/, 'js')) : join('fences', file);
  // A working folder of its own: a fence that writes files meets no other's.
  const cwd = mkdtempSync(join(project.folder, 'run-'));
  const outcome = await runCommand(
    process.execPath,
    ['--enable-source-maps', join(project.folder, program)],
    { cwd, timeout },
  );
  const where = `${page}:${fence.line}`;
  const printed = `${outcome.stdout}${outcome.stderr}`
    .replaceAll(pathToFileURL(`${project.folder}/fences/`).href, '')
    .replaceAll(join(project.folder, 'fences/'), '')
    .replace(/\.L\d+\.(?:ts|js|cjs)(?=:\d)/g, '');
  if (outcome.timedOut) return `${where} still ran after ${timeout} ms and was killed.\n${printed}`;
  if (outcome.code !== 0) return `${where} exited with ${outcome.code}.\n${printed}`;
  if (expected !== undefined && outcome.stdout.trimEnd() !== expected.trimEnd()) {
    return `${where} printed something else than the page shows.\n--- the page\n${expected.trimEnd()}\n--- printed\n${outcome.stdout.trimEnd()}`;
  }
  return undefined;
}

/**
 * @template T
 * @param {readonly T[]} items
 * @param {number} atOnce
 * @param {(item: T) => Promise<void>} work
 */
async function eachOf(items, atOnce, work) {
  const queue = [...items];
  const worker = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { pages, snippets, ran, failures } = await checkDocs().catch((error) => {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  });
  for (const failure of failures) console.error(`${failure}\n`);
  console.log(`${pages} pages, ${snippets} code fences, ${ran} of them run.`);
  // A page counts once for what it points at, a fence once for what it promises.
  const tally = {
    passed: Math.max(0, pages + snippets - failures.length),
    failed: failures.length,
    skipped: 0,
  };
  if (!record(tally)) console.log(tallyLine(tally));
  process.exitCode = failures.length > 0 ? 1 : 0;
}
