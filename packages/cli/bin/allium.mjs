#!/usr/bin/env node
// Stands apart from the build, so that npm can link it before there is one.
import { readFileSync } from 'node:fs';
import * as nodeModule from 'node:module';

const args = process.argv.slice(2);
if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
  // The program answers it, too, but it would be loaded first.
  console.log(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version);
} else {
  // From Node 22.1 on, what was compiled once is kept on disk.
  nodeModule.enableCompileCache?.();
  const { start } = await import('../dist/main.js');
  await start();
}
