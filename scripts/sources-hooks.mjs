// Node's own modules, but of TypeScript: types are removed as a file is loaded, and `allium` is what stands in src. Hot
// code runs as fast as it will for users; vite's module runner would turn every imported name into a property.

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { transformSync } from 'rolldown/utils';

/**
 * @import { LoadHook, ResolveHook } from 'node:module'
 */

const packages = new URL('../packages/', import.meta.url);

/** Public names, and the files that stand for them. The same are in tsconfig.check.json. @type {[RegExp, string][]} */
const NAMES = [
  [/^allium$/, 'allium/src/index.ts'],
  [/^allium\/(kit|testing|http|http\/client|json-schema|middleware|registry)$/, 'allium/src/$1/index.ts'],
  [/^allium\/(middleware|models|stores)\/([^/]+)$/, 'allium/src/$1/$2/index.ts'],
  [/^@allium\/([^/]+)$/, '$1/src/index.ts'],
];

/** What was built, and what was installed, knows nothing of the sources. */
const BUILT = /\/(dist|node_modules)\//;

/** @type {ResolveHook} */
export const resolve = (specifier, context, next) => {
  const { parentURL } = context;
  if (!parentURL || BUILT.test(parentURL)) return next(specifier, context);
  const missing = new URL(parentURL).searchParams.get('without');
  if (missing && (specifier === missing || specifier.startsWith(`${missing}/`)))
    throw Object.assign(new Error(`Cannot find package '${missing}' imported from ${parentURL}`), {
      code: 'ERR_MODULE_NOT_FOUND',
    });
  const file = sourceOf(specifier, parentURL);
  if (!file) return next(specifier, context);
  // What it imports does without it, too: modules of their own, that share nothing with the others.
  if (missing) file.searchParams.set('without', missing);
  return { url: file.href, format: 'module', shortCircuit: true };
};

/** @returns {URL | undefined} */
function sourceOf(/** @type {string} */ specifier, /** @type {string} */ parentURL) {
  for (const [name, file] of NAMES)
    if (name.test(specifier)) return new URL(specifier.replace(name, file), packages);
  if (!/^(\.\.?\/|file:)/.test(specifier)) return undefined;
  const url = new URL(specifier, parentURL);
  if (url.pathname.endsWith('.ts')) return url;
  // TypeScript is imported by the name of what becomes of it.
  if (!url.pathname.endsWith('.js')) return undefined;
  url.pathname = url.pathname.replace(/js$/, 'ts');
  return existsSync(url) ? url : undefined;
}

/** @type {LoadHook} */
export const load = (url, context, next) => {
  const { protocol, pathname } = new URL(url);
  if (protocol !== 'file:' || !pathname.endsWith('.ts')) return next(url, context);
  const file = fileURLToPath(url);
  const { code, map, errors } = transformSync(file, readFileSync(file, 'utf8'), {
    tsconfig: false,
    typescript: { onlyRemoveTypeImports: true },
    sourcemap: true,
  });
  if (errors[0]) throw new SyntaxError(`${file}: ${errors[0].message}`);
  const inline = Buffer.from(JSON.stringify(map)).toString('base64');
  const source = `${code}\n//# sourceMappingURL=data:application/json;base64,${inline}`;
  return { format: 'module', source, shortCircuit: true };
};
