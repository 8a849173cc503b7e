// What the tests of examples need: a Chromium, and the packages of examples/chat and examples/http. Installs what is
// missing, if it can.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { installDebianPackage } from './debian-package.mjs';
import { root } from './repository.mjs';

/** Where React, the AI SDK and playwright-core are. */
export const chatFolder = join(root, 'examples', 'chat');

const serversFolder = join(root, 'examples', 'http');

/** The flags that Chromium needs in containers, and to stay off the network. */
export const CHROMIUM_FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** The path of a Chromium, or undefined. `ALLIUM_TEST_CHROMIUM` names one. */
export function findChromium() {
  const given = process.env.ALLIUM_TEST_CHROMIUM;
  if (given) return given;
  const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
  const folders = (process.env.PATH ?? '').split(process.platform === 'win32' ? ';' : ':');
  for (const name of names)
    for (const folder of folders) if (existsSync(join(folder, name))) return join(folder, name);
  return undefined;
}

/** What is missing, in words; empty when everything is there. */
export function missing() {
  const lacks = [];
  if (!findChromium()) lacks.push('a Chromium');
  if (!existsSync(join(chatFolder, 'node_modules', 'playwright-core')))
    lacks.push('the packages of examples/chat');
  return lacks;
}

async function install() {
  if (!existsSync(join(chatFolder, 'node_modules', 'playwright-core')))
    attempt('npm', ['ci', '--no-audit', '--no-fund'], {
      cwd: chatFolder,
      shell: process.platform === 'win32',
    });
  if (!existsSync(join(serversFolder, 'node_modules')))
    attempt('npm', ['ci', '--no-audit', '--no-fund'], {
      cwd: serversFolder,
      shell: process.platform === 'win32',
    });
  if (!findChromium() && process.platform === 'linux' && process.getuid?.() === 0) {
    try {
      await installDebianPackage('chromium');
    } catch (error) {
      console.error(error instanceof Error ? error.message : error);
    }
  }
}

function attempt(/** @type {string} */ program, /** @type {string[]} */ args, options = {}) {
  try {
    execFileSync(program, args, { stdio: ['ignore', 'ignore', 'inherit'], ...options });
  } catch {
    console.error(`${program} ${args.join(' ')} failed.`);
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await install();
  const lacks = missing();
  if (lacks.length > 0)
    console.error(`The browser tests will be SKIPPED: ${lacks.join(' and ')} could not be installed.`);
  else console.log('Chromium and the packages of examples/chat are there.');
}
