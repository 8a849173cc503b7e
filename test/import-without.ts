/** Imports a module of the repository as if a package were not installed; see scripts/sources-hooks.mjs. */
export function importWithout<Module>(missing: string, file: URL): Promise<Module> {
  return import(`${file.href}?without=${missing}`);
}
