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

/** What everybody outside the kernel writes with: the names that users have, too. */
const PUBLIC = ['index.ts', 'kit/index.ts'];

/**
 * Folders that some middleware share, and who may import them beside the public names. Whoever is not listed has none.
 *
 * @type {readonly { folders: RegExp, shared: readonly string[] }[]}
 */
const SHARED = [
  { folders: /^(?:record|replay)$/, shared: ['cassette/'] },
  { folders: /^(?:cache|tool-cache|idempotency)$/, shared: ['caching/'] },
  { folders: /^(?:concurrency|rate-limit)$/, shared: ['limiting/'] },
  { folders: /^(?:compaction|context-editing|history-truncator)$/, shared: ['context-window/'] },
  {
    folders: /^(?:deferred-tools|skills|subagents|tool-result-limit)$/,
    shared: ['own-tools/', 'context-window/token-counter.ts'],
  },
  { folders: /^memory-recall$/, shared: ['stores/sqlite/driver.ts'] },
  { folders: /^structured-output$/, shared: ['json-schema/index.ts'] },
];

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
    from: /^(compose\/)/,
    may: inside('kernel/', 'compose/'),
    builtins: false,
    packages: false,
    says: 'compose/ makes the plans that kernel/ runs, and imports nothing else',
  },
  {
    from: /^(kit\/)/,
    may: inside('kernel/', 'compose/', 'kit/'),
    builtins: false,
    packages: false,
    says: 'kit/ is for authors, and imports nothing but kernel/ and compose/',
  },
  {
    from: /^(agent\/)/,
    may: inside('kernel/', 'compose/', 'kit/', 'agent/', 'trace/index.ts', 'stores/memory/index.ts'),
    builtins: false,
    packages: false,
    says: 'agent/ is what users hold: it imports kernel/, compose/ and kit/, and brings along a store and traces',
  },
  {
    from: /^middleware\/index\.ts$/,
    may: (path) => /^middleware\/[^/]+\/index\.ts$/.test(path),
    builtins: false,
    packages: false,
    says: 'middleware/index.ts only lists the middleware',
  },
  {
    from: /^(texts\/)/,
    may: inside('texts/'),
    builtins: false,
    packages: false,
    says: 'texts/, which every middleware may use, imports nothing',
  },
  {
    from: /^(trace\/)/,
    may: (path, own) => inside(...PUBLIC, own)(path),
    builtins: false,
    packages: false,
    says: 'trace/ is written with ../index.js, ../kit/index.js and its own folder',
  },
  {
    from: /^((?:caching|limiting|own-tools)\/)/,
    may: (path, own) => inside(...PUBLIC, own)(path),
    builtins: false,
    packages: false,
    says: 'what some middleware share imports ../index.js, ../kit/index.js and its own folder',
  },
  {
    from: /^(cassette\/)/,
    may: (path, own) => inside(...PUBLIC, own)(path),
    builtins: true,
    packages: false,
    says: 'cassette/, which record and replay share, imports ../index.js, ../kit/index.js and its own folder',
  },
  {
    from: /^((?:context-window|json-schema)\/)/,
    may: (path, own) => inside(...PUBLIC, own)(path),
    builtins: false,
    packages: true,
    says: 'it imports ../index.js, ../kit/index.js and its own folder',
  },
  {
    from: /^(middleware\/[^/]+\/)/,
    may: (path, own) => inside(...PUBLIC, 'texts/', own, ...sharedBy(own))(path),
    builtins: true,
    packages: true,
    says: 'a middleware imports ../../index.js, ../../kit/index.js, its own folder and what it shares with others, as anybody could',
  },
  {
    from: /^(stores\/[^/]+\/)/,
    may: (path, own) => inside(...PUBLIC, 'stores/kit/index.ts', own)(path),
    builtins: true,
    packages: true,
    says: 'a store imports ../../index.js, ../../kit/index.js, ../kit/index.js and its own folder',
  },
  {
    from: /^(models\/[^/]+\/)/,
    may: (path, own) => inside(...PUBLIC, own)(path),
    builtins: true,
    packages: true,
    says: 'a model imports ../../index.js, ../../kit/index.js and its own folder',
  },
  {
    from: /^(http\/client\/)/,
    may: (path, own) => inside(own, 'http/events.ts')(path),
    builtins: false,
    packages: false,
    says: 'the client runs in browsers: it imports its own folder and the types of events',
  },
  {
    from: /^(http\/)/,
    may: (path, own) => inside(...PUBLIC, 'stores/kit/index.ts', own)(path),
    builtins: false,
    packages: false,
    says: 'http/ runs wherever `fetch` does: it imports ../index.js, ../kit/index.js, ../stores/kit/index.js and its own folder',
  },
  {
    from: /^(testing\/)/,
    may: (path) => !path.startsWith('kernel/'),
    builtins: true,
    packages: true,
    says: 'the test kit is written with public names and the kit, too; third-party packages are loaded lazily, with `import()`',
  },
  {
    from: /^/,
    may: () => true,
    builtins: true,
    packages: true,
    says: 'third-party packages are loaded lazily, with `import()`',
  },
];

/** Whose code may read fields that begin with an underscore: they are not in the types that users see. */
const INSIDERS = /^(?:kernel|kit|agent)\/|^index\.ts$/;

/** `ctx._run`, and `{ _run }` or `{ _run: run }` taken apart. */
const SECRET = /\._[a-z]\w*|[{,]\s*_[a-z]\w*\s*(?=[:,}=])/gi;

/**
 * Checks all sources of a package. Tests are free: they may import the test kit and development dependencies.
 *
 * @param {ReadonlyMap<string, string>} sources Path below `src` (forward slashes) to code.
 * @returns {string[]} One message per import that breaks an arrow, and per private field that is read outside; empty when all is well.
 */
export function layoutViolations(sources) {
  /** @type {string[]} */
  const violations = [];
  for (const [path, code] of sources) {
    if (isTest(path)) continue;
    const arrow = arrows.find(({ from }) => from.test(path));
    if (!arrow) continue;
    const own = arrow.from.exec(path)?.[1] ?? '';
    if (!INSIDERS.test(path)) violations.push(...secretsOf(path, code));
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

function secretsOf(/** @type {string} */ path, /** @type {string} */ code) {
  return [...code.matchAll(SECRET)].map(({ 0: read, index }) => {
    const line = code.slice(0, index).split('\n').length;
    return `${path}:${line} reads ${read.replace(/^[{,]\s*/, '').trim()}: only kernel/, kit/ and agent/ may, for users cannot.`;
  });
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

function sharedBy(/** @type {string} */ own) {
  const name = own.split('/')[1] ?? '';
  return SHARED.filter(({ folders }) => folders.test(name)).flatMap(({ shared }) => shared);
}

function inside(/** @type {string[]} */ ...folders) {
  return (/** @type {string} */ path) => folders.some((folder) => path.startsWith(folder));
}

export function isTest(/** @type {string} */ path) {
  return /\.test(-d)?\.ts$/.test(path);
}
