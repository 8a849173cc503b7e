// Where things are in this repository.

import { fileURLToPath } from 'node:url';

/** The repository's root folder, without a closing slash. */
export const root = fileURLToPath(new URL('..', import.meta.url)).replace(/[\\/]$/, '');

/** The main package's folder. */
export const alliumFolder = `${root}/packages/allium`;

/** The TypeScript compiler's entry, to be run with `process.execPath`. */
export const tsc = `${root}/node_modules/typescript/bin/tsc`;
