// Compiles every package with plain tsc and removes outputs whose source is gone: what lies in dist is published. The
// modules of allium, the config and the command line are then put together, all of the kernel in one file: importing
// many small ones takes longer than reading them. The page of Studio is built with vite.

import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { oncePerRun, openRun } from './once.mjs';
import { root, tsc } from './repository.mjs';
import { runCommand } from './run-command.mjs';

/** Builds what has changed, once per run of the tests; throws with the compiler's messages when it does not compile. */
export async function build() {
  const run = openRun();
  try {
    await oncePerRun('build', buildChanged);
  } finally {
    run.close();
  }
}

async function buildChanged() {
  const packages = readdirSync(join(root, 'packages')).map((name) => join(root, 'packages', name));
  const projects = packages.filter((folder) => existsSync(join(folder, 'tsconfig.json')));
  const args = [tsc, '-b', ...projects, '--pretty', 'false'];
  const { code, stdout, stderr } = await runCommand(process.execPath, args, { cwd: root });
  if (code !== 0) throw new Error(`The build failed.\n${stdout}${stderr}`);
  for (const folder of projects) {
    removeStale(join(folder, 'src'), join(folder, 'build'));
    removeStale(join(folder, 'src'), join(folder, 'dist'));
    if (existsSync(join(folder, 'build'))) await bundle(folder);
  }
  await buildPage(join(root, 'packages', 'studio', 'web'));
}

/** The page of Studio, with vite, if one of its files has changed since the last time. */
async function buildPage(/** @type {string} */ folder) {
  const hash = createHash('sha256');
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !relative(folder, entry.parentPath).startsWith('dist'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  for (const file of files) hash.update(relative(folder, file)).update(readFileSync(file));
  const stamp = hash.digest('hex');
  const last = join(root, 'node_modules', '.cache', 'studio-page');
  const built = existsSync(join(folder, 'dist', 'index.html'));
  if (built && existsSync(last) && readFileSync(last, 'utf8') === stamp) return;
  const vite = await import('vite');
  await vite.build({ configFile: join(folder, 'vite.config.mjs'), logLevel: 'warn' });
  mkdirSync(dirname(last), { recursive: true });
  writeFileSync(last, stamp);
}

/**
 * Modules that are loaded by their own path, by package; of the others it is `index.js`.
 *
 * @type {Record<string, (path: string) => boolean>}
 */
const ENTRIES = {
  allium: (path) => path.endsWith('index.js') && !path.startsWith('testing/broken'),
  cli: (path) => path === 'index.js' || path === 'main.js',
};

/**
 * Modules that are used together go into one file, by package.
 *
 * @type {Record<string, { name: string, test: RegExp }[]>}
 */
const GROUPS = {
  allium: [
    { name: 'kernel', test: /[\\/]build[\\/](kernel|compose|kit|agent|trace|stores[\\/](kit|memory))[\\/]/ },
  ],
  // What all commands share, with `run`, which is what most are. The help needs the others, so those are one file.
  cli: [
    {
      name: 'program',
      test: /[\\/]build[\\/](?!index\.js|terminal[\\/]screen\.js|commands[\\/](?!index\.js|run\.js)|(chat|init)[\\/])/,
    },
    { name: 'commands', test: /[\\/]build[\\/]commands[\\/]/ },
  ],
};

/**
 * Packages that others need not install, because they become part of ours: loading many files takes longer than loading
 * one. Their licences are shipped with them.
 *
 * @type {Record<string, string[]>}
 */
const BROUGHT = { cli: ['commander'], config: ['smol-toml'] };

/**
 * A file with other characters takes longer to read, and twice the memory for as long as the process runs.
 *
 * @type {import('rolldown').Plugin}
 */
const inAscii = {
  name: 'in-ascii',
  generateBundle(_, files) {
    for (const file of Object.values(files))
      if (file.type === 'chunk')
        file.code = file.code.replace(
          /[^\0-\x7f]/g,
          (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
        );
  },
};

/** From the modules in `build` to one file for each entry in `dist`, and those they share. */
async function bundle(/** @type {string} */ folder) {
  const build = join(folder, 'build');
  const dist = join(folder, 'dist');
  // Compiled anew only where something changed, so this is all there is to look at.
  const stamp = readFileSync(join(build, '.tsbuildinfo'), 'utf8');
  const last = join(build, '.bundled');
  if (existsSync(last) && readFileSync(last, 'utf8') === stamp) return;
  const isEntry = ENTRIES[basename(folder)] ?? ((path) => path === 'index.js');
  const input = Object.fromEntries(
    modules(build)
      .filter(isEntry)
      .map((path) => [path.slice(0, -'.js'.length), join(build, path)]),
  );
  for (const path of modules(dist)) rmSync(join(dist, path));
  const brought = BROUGHT[basename(folder)] ?? [];
  for (const name of brought)
    copyFileSync(join(root, 'node_modules', name, 'LICENSE'), join(dist, `LICENSE-${name}`));
  const bundled = await rolldown({
    input,
    platform: brought.length > 0 ? 'node' : 'neutral',
    external: (id) => /^[^./]/.test(id) && !brought.includes(id),
    // The other files of the command line import what they share from the program itself.
    preserveEntrySignatures: basename(folder) === 'cli' ? 'allow-extension' : 'exports-only',
  });
  await bundled.write({
    dir: dist,
    entryFileNames: '[name].js',
    chunkFileNames: 'shared/[name].js',
    comments: false,
    codeSplitting: { groups: GROUPS[basename(folder)] ?? [] },
    plugins: [inAscii],
  });
  await bundled.close();
  writeFileSync(last, stamp);
}

function modules(/** @type {string} */ folder) {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.js'))
    .map((path) => relative(folder, join(folder, path)).replaceAll('\\', '/'));
}

const KEPT = new Set(['.tsbuildinfo', '.bundled', 'shared']);

function removeStale(/** @type {string} */ src, /** @type {string} */ dist) {
  for (const entry of existsSync(dist) ? readdirSync(dist, { withFileTypes: true }) : []) {
    const output = join(dist, entry.name);
    const source = join(src, entry.name.replace(/(\.d\.ts|\.js)(\.map)?$/, '.ts'));
    if (entry.isDirectory() && existsSync(source)) removeStale(source, output);
    else if (!existsSync(source) && !KEPT.has(entry.name) && !entry.name.startsWith('LICENSE-'))
      rmSync(output, { recursive: true });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  try {
    await build();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
