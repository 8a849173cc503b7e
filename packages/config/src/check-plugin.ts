/** Verifies a plugin: its manifest, its exports, and whether it keeps the laws. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import type { Middleware } from 'allium';
import {
  checkOptionsSchema,
  type Factory,
  type FactoryContext,
  type MakeNamed,
  type OptionsSchema,
  resolveNamed,
} from 'allium/registry';
import { importFile, loaderFrom, type Module, type PackageJson, readManifest } from './modules.js';
import { manifestOf, pluginEntry } from './plugins.js';
import type { PluginCheck, PluginManifest, PluginReport } from './types.js';

type Outcome = { readonly ok: boolean; readonly message: string };

/** How long the plugin's own tests may take, in milliseconds. */
const TESTS = 120_000;

/**
 * Checks the package in `dir`. A plugin that can't be made without options exports some as `exampleOptions`.
 * Its own tests (`npm test`) run the laws, because they know what it changes on purpose; without tests, this does.
 *
 * @example
 * const { ok, checks } = await checkPlugin('.');
 */
export async function checkPlugin(dir: string): Promise<PluginReport> {
  const folder = resolve(dir);
  const checks: PluginCheck[] = [];
  const add = (name: string, { ok, message }: Outcome): boolean => {
    checks.push({ name, ok, message });
    return ok;
  };
  const report = (manifest?: PluginManifest): PluginReport => ({
    ok: checks.every(({ ok }) => ok),
    folder,
    manifest,
    checks,
  });
  if (!existsSync(join(folder, 'package.json'))) {
    add('manifest', { ok: false, message: `${folder} has no package.json.` });
    return report();
  }
  const packageJson = readManifest(folder);
  const manifest = manifestOf(packageJson);
  if (typeof manifest === 'string') {
    add('manifest', { ok: false, message: manifest });
    return report();
  }
  add('manifest', {
    ok: true,
    message: `${packageJson.name} is a ${manifest.type} called "${manifest.name}".`,
  });
  add('dependency', dependency(packageJson));
  const loaded = await load(folder, packageJson, manifest);
  if (!add('export', loaded)) return report(manifest);
  const made = await make(folder, manifest, loaded.module!);
  if (add('options', made)) add('laws', await laws(folder, packageJson, manifest, made.again!));
  return report(manifest);
}

/** Two copies of Allium in one process would each have their own registry. */
function dependency({ dependencies = {}, peerDependencies = {} }: PackageJson): Outcome {
  if (peerDependencies.allium === undefined)
    return {
      ok: false,
      message: 'allium must be among its peerDependencies, so that it uses the copy of the project.',
    };
  if (dependencies.allium !== undefined)
    return {
      ok: false,
      message: 'allium is among its dependencies, which brings a second copy. A peerDependency is enough.',
    };
  return { ok: true, message: `It works with allium ${peerDependencies.allium}.` };
}

async function load(
  folder: string,
  packageJson: PackageJson,
  manifest: PluginManifest,
): Promise<Outcome & { module?: Module }> {
  const entry = pluginEntry(folder, packageJson, manifest);
  const shown = relative(folder, entry);
  if (!existsSync(entry)) return { ok: false, message: `Its entry ${shown} does not exist. Is it built?` };
  try {
    const module = await importFile(entry);
    if (typeof module.default !== 'function')
      return { ok: false, message: `${shown} has no default export that is a function.` };
    return { ok: true, message: `${shown} exports a function.`, module };
  } catch (error) {
    return { ok: false, message: `${shown} cannot be loaded: ${(error as Error).message}` };
  }
}

async function make(
  folder: string,
  { type, name }: PluginManifest,
  { default: factory, optionsSchema, exampleOptions = {} }: Module,
): Promise<Outcome & { again?: () => unknown }> {
  try {
    let options: unknown = exampleOptions;
    if (optionsSchema !== undefined) {
      const checked = await checkOptionsSchema(optionsSchema as OptionsSchema, options);
      if (checked.issues)
        return {
          ok: false,
          message: `${checked.issues[0].message} Export options that fit as \`exampleOptions\`.`,
        };
      options = checked.value;
    }
    const load = loaderFrom(folder);
    const named: MakeNamed = (kind, item) => resolveNamed(kind, item, { dir: folder, load });
    const context: FactoryContext = { name, id: '', dir: folder, load, make: named };
    const again = () => (factory as Factory<unknown>)(options as never, context);
    const made: unknown = await again();
    const method = { model: 'stream', store: 'append' }[type as string];
    const fits =
      typeof made === 'object' && made !== null && (!method || typeof (made as never)[method] === 'function');
    if (!fits) return { ok: false, message: `Its function does not make a ${type}.` };
    if (type === 'store') await (made as { close?(): unknown }).close?.();
    const { name: own } = made as Middleware;
    if (type === 'middleware' && own !== name)
      return {
        ok: false,
        message: `It is registered as "${name}", but the middleware calls itself ${JSON.stringify(own)}.`,
      };
    return {
      ok: true,
      message: `It makes a ${type}${optionsSchema === undefined ? ', and checks its options itself' : ' of options that fit its schema'}.`,
      again,
    };
  } catch (error) {
    return {
      ok: false,
      message: `It cannot be made: ${(error as Error).message} Export options that fit as \`exampleOptions\`.`,
    };
  }
}

const KIT = {
  middleware: /testMiddleware|checkMiddleware/,
  model: /testModel|checkModel/,
  store: /testStore|checkStore/,
};

async function laws(
  folder: string,
  { scripts = {} }: PackageJson,
  { type }: PluginManifest,
  again: () => unknown,
): Promise<Outcome> {
  if (scripts.test !== undefined) {
    const kit = KIT[type];
    if (!testFiles(folder).some((file) => kit.test(readFileSync(file, 'utf8'))))
      return {
        ok: false,
        message: `It has tests, but none of them uses ${kit.source.split('|')[0]}() of allium/testing.`,
      };
    return ownTests(folder);
  }
  if (type !== 'middleware')
    return {
      ok: false,
      message: `It has no tests. Hold it to the laws with ${KIT[type].source.split('|')[0]}() of allium/testing.`,
    };
  const { checkMiddleware } = await import('allium/testing');
  const broken = (await checkMiddleware(() => again() as Middleware)).filter(({ ok }) => !ok);
  if (broken.length === 0) return { ok: true, message: 'It keeps the laws of middleware.' };
  return { ok: false, message: `It breaks the laws ${broken.map(({ law }) => law).join(', ')}.` };
}

function testFiles(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return files
    .filter(
      (file) =>
        /\.(test|spec)\.[cm]?[jt]sx?$|(^|[\\/])test[\\/].*\.[cm]?[jt]s$/.test(file) &&
        !/node_modules/.test(file),
    )
    .map((file) => join(folder, file));
}

async function ownTests(folder: string): Promise<Outcome> {
  const { spawn } = await import('node:child_process');
  return new Promise((done) => {
    // Variables that a test runner sets for its children would make another one think it is one of them.
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !/^(VITEST|NODE_TEST_CONTEXT|NODE_OPTIONS)/.test(name)),
    );
    const child = spawn('npm', ['test', '--silent'], {
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      shell: process.platform === 'win32',
    });
    let output = '';
    const timer = setTimeout(() => child.kill('SIGKILL'), TESTS);
    child.stdout.on('data', (text) => (output += text));
    child.stderr.on('data', (text) => (output += text));
    child.on('error', (error) => done({ ok: false, message: `Its tests cannot be run: ${error.message}` }));
    child.on('close', (code) => {
      clearTimeout(timer);
      if (code === 0) done({ ok: true, message: 'Its tests pass, the laws among them.' });
      else
        done({ ok: false, message: `Its tests fail.\n${output.trim().split('\n').slice(-40).join('\n')}` });
    });
  });
}
