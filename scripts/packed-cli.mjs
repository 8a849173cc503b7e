// An empty project with the packed command line installed in it, and everything it depends on.

import { join } from 'node:path';
import { packedProject } from './packed-project.mjs';

/** @returns {Promise<Awaited<ReturnType<typeof packedProject>> & { program: string }>} `program` is what node runs. */
export async function packedCli() {
  const project = await packedProject(['@allium/cli', '@allium/config']);
  return { ...project, program: join(project.folder, 'node_modules/@allium/cli/bin/allium.mjs') };
}
