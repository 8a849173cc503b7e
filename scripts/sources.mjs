// node --import ./scripts/sources.mjs: runs the TypeScript of this repository as it is, under its public names.

import { register } from 'node:module';

register('./sources-hooks.mjs', import.meta.url);
