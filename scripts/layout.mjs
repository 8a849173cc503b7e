// The dependency arrows as data: which folder of a package's sources may import what, and who breaks it.

import { isBuiltin } from 'node:module';
import { posix } from 'node:path';
import { importsOf, packageOf } from './imports.mjs';

/**
 * @typedef {object} Arrow
 * @property {RegExp} from The files it speaks for; the first arrow that matches a file decides.
 * @property {(path: string, own: string) => boolean} may Which sources they may import; `own` is the first capture of `from`.
 * @property {boolean} builtins Whether node's own modules are allowed.
 * @property {boolean} packages Whether third-party packages are allowed, lazily: by `import()` only.
 * @property {string} says The rule in words, for the message.
 */

/** @type {readonly Arrow[]} */
export const arrows = [
  {
    from: /^(kernel\/)/,
    may: inside('kernel/'),
    builtins: false,
    packages: false,
    says: 'kernel/ imports nothing outside kernel/',
  },
  {
    from: /^middleware\/index\.ts$/,
    may: (path) => /^middleware\/[^/]+\/index\.ts$/.test(path),
    builtins: false,
    packages: false,
    says: 'middleware/index.ts only lists the middleware',
  },
  {
    from: /^(cassette\/)/,
    may: inside('kernel/', 'cassette/'),
    builtins: true,
    packages: false,
    says: 'cassette/, which record and replay share, imports the kernel',
  },
  {
    from: /^(middleware\/(?:record|replay)\/)/,
    may: (path, own) => inside('kernel/', 'cassette/', own)(path) || path === 'index.ts',
    builtins: true,
    packages: true,
    says: 'record and replay import the kernel, cassette/ and their own folder',
  },
  {
    from: /^(caching\/)/,
    may: inside('kernel/', 'caching/'),
    builtins: false,
    packages: false,
    says: 'caching/, which cache, tool-cache and idempotency share, imports the kernel',
  },
  {
    from: /^(middleware\/(?:cache|tool-cache|idempotency)\/)/,
    may: (path, own) => inside('kernel/', 'caching/', own)(path) || path === 'index.ts',
    builtins: true,
    packages: true,
    says: 'cache, tool-cache and idempotency import the kernel, caching/ and their own folder',
  },
  {
    from: /^(context-window\/)/,
    may: inside('kernel/', 'context-window/'),
    builtins: false,
    packages: true,
    says: 'context-window/, which the middleware that fit requests into a window share, imports the kernel',
  },
  {
    from: /^(middleware\/(?:compaction|context-editing|history-truncator)\/)/,
    may: (path, own) => inside('kernel/', 'texts/', 'context-window/', own)(path) || path === 'index.ts',
    builtins: true,
    packages: true,
    says: 'compaction, context-editing and history-truncator import the kernel, texts/, context-window/ and their own folder',
  },
  {
    from: /^(texts\/)/,
    may: inside('texts/'),
    builtins: false,
    packages: false,
    says: 'texts/, which every middleware may use, imports nothing',
  },
  {
    from: /^(own-tools\/)/,
    may: inside('kernel/', 'own-tools/'),
    builtins: false,
    packages: false,
    says: 'own-tools/, which middleware with tools of their own share, imports the kernel',
  },
  {
    from: /^(middleware\/(?:deferred-tools|skills|subagents|tool-result-limit)\/)/,
    may: (path, own) =>
      inside('kernel/', 'texts/', 'own-tools/', own)(path) ||
      ['index.ts', 'context-window/token-counter.ts'].includes(path),
    builtins: true,
    packages: true,
    says: 'middleware with tools of their own import the kernel, texts/, own-tools/, their own folder and the counter of tokens',
  },
  {
    from: /^(middleware\/memory-recall\/)/,
    may: (path, own) =>
      inside('kernel/', 'texts/', own)(path) || ['index.ts', 'stores/sqlite/driver.ts'].includes(path),
    builtins: true,
    packages: true,
    says: 'memory-recall imports the kernel, texts/, its own folder and the driver of the SQLite store',
  },
  {
    from: /^(middleware\/structured-output\/)/,
    may: (path, own) =>
      inside('kernel/', 'texts/', own)(path) || ['index.ts', 'json-schema/index.ts'].includes(path),
    builtins: true,
    packages: true,
    says: 'structured-output imports the kernel, texts/, json-schema/ and its own folder',
  },
  {
    from: /^(middleware\/[^/]+\/)/,
    may: (path, own) => inside('kernel/', 'texts/', own)(path) || path === 'index.ts',
    builtins: true,
    packages: true,
    says: 'a middleware imports the kernel (or ../../index.js), texts/ and its own folder',
  },
  {
    from: /^((?:models|stores)\/[^/]+\/)/,
    may: (path, own) => inside('kernel/', own)(path) || path === 'index.ts',
    builtins: true,
    packages: true,
    says: 'a model or store imports the kernel (or ../../index.js) and its own folder',
  },
  {
    from: /^/,
    may: () => true,
    builtins: true,
    packages: true,
    says: 'third-party packages are loaded lazily, with `import()`',
  },
];

/**
 * Checks all sources of a package. Tests are free: they may import the test kit and development dependencies.
 *
 * @param {ReadonlyMap<string, string>} sources Path below `src` (forward slashes) to code.
 * @returns {string[]} One message per import that breaks an arrow; empty when all is well.
 */
export function layoutViolations(sources) {
  /** @type {string[]} */
  const violations = [];
  for (const [path, code] of sources) {
    if (isTest(path)) continue;
    const arrow = arrows.find(({ from }) => from.test(path));
    if (!arrow) continue;
    const own = arrow.from.exec(path)?.[1] ?? '';
    for (const { specifier, kind, line } of importsOf(path, code)) {
      const broken = judge(specifier, kind);
      if (broken) violations.push(`${path}:${line} imports ${specifier ?? 'a computed path'}: ${broken}.`);
    }

    /** @type {(specifier: string | undefined, kind: string) => string | undefined} */
    function judge(specifier, kind) {
      if (!arrow) return undefined;
      if (specifier === undefined) return arrow.packages ? undefined : arrow.says;
      if (specifier.startsWith('.')) {
        const target = resolveSource(path, specifier, sources);
        if (!target) return 'no such source file';
        if (isTest(target)) return 'sources do not import tests';
        return arrow.may(target, own) ? undefined : arrow.says;
      }
      if (isBuiltin(specifier)) return arrow.builtins ? undefined : arrow.says;
      if (!arrow.packages) return arrow.says;
      if (kind === 'dynamic') return undefined;
      return `load ${packageOf(specifier)} lazily with \`import()\` and describe its types structurally, for allium has no dependencies`;
    }
  }
  return violations;
}

/** `max-turns` → `maxTurns`. */
export function camelCase(/** @type {string} */ kebab) {
  return kebab.replace(/-([a-z0-9])/g, (_, letter) => letter.toUpperCase());
}

/**
 * The file a relative specifier means: written `./x.js`, found as `./x.ts`.
 *
 * @param {string} from
 * @param {string} specifier
 * @param {ReadonlyMap<string, string>} sources
 */
export function resolveSource(from, specifier, sources) {
  const path = posix.join(posix.dirname(from), specifier);
  return [path.replace(/\.js$/, '.ts'), path].find((candidate) => sources.has(candidate));
}

function inside(/** @type {string[]} */ ...folders) {
  return (/** @type {string} */ path) => folders.some((folder) => path.startsWith(folder));
}

export function isTest(/** @type {string} */ path) {
  return /\.test(-d)?\.ts$/.test(path);
}
