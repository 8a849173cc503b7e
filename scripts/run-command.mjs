// Runs a program to its end and returns its exit code and output; with a timeout it is killed, never waited for.

import { spawn } from 'node:child_process';

/**
 * @typedef {object} RunOptions
 * @property {string} [cwd]
 * @property {NodeJS.ProcessEnv} [env] The whole environment; without it the parent's, cleaned by `cleanEnvironment`.
 * @property {number} [timeout] Milliseconds until it is killed. Default: 540000, a little less than a test may take.
 * @property {string} [input] What it reads on stdin. Default: nothing.
 */

/** @typedef {{ code: number, stdout: string, stderr: string, timedOut: boolean }} RunOutcome */

/**
 * Resolves whatever the exit code; rejects only when the program cannot be started.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {RunOptions} [options]
 * @returns {Promise<RunOutcome>}
 */
export function runCommand(command, args, { cwd, env = cleanEnvironment(), timeout = 540_000, input } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env,
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      shell: process.platform === 'win32' && command === 'npm',
    });
    let stdout = '';
    let stderr = '';
    let timedOut = false;
    child.stdout?.setEncoding('utf8').on('data', (text) => (stdout += text));
    child.stderr?.setEncoding('utf8').on('data', (text) => (stderr += text));
    // A program that does not read to the end is no error.
    child.stdin?.on('error', () => {}).end(input);
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill('SIGKILL');
    }, timeout);
    child.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ code: code ?? 1, stdout, stderr, timedOut });
    });
  });
}

/**
 * Like `runCommand`, but an exit code other than 0 is an error that shows what the program printed.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {RunOptions} [options]
 */
export async function mustRun(command, args, options) {
  const outcome = await runCommand(command, args, options);
  if (outcome.code !== 0) {
    const why = outcome.timedOut ? 'timed out' : `exited with ${outcome.code}`;
    throw new Error(`\`${command} ${args.join(' ')}\` ${why}.\n${outcome.stdout}${outcome.stderr}`);
  }
  return outcome;
}

/**
 * The parent's environment without what npm, vitest or a debugger put there for the parent alone: a child
 * npm must look at its own folder, and a child node must start plainly.
 */
export function cleanEnvironment() {
  const env = { ...process.env };
  for (const name of Object.keys(env)) {
    if (
      /^(npm_(package|lifecycle|command|config_(workspace|local_prefix|prefix|dry_run|json|user_agent))|VITEST|NODE_(OPTIONS|V8_COVERAGE|ENV|CHANNEL)|INIT_CWD|ALLIUM_TALLY_FILE$|FORCE_COLOR$)/i.test(
        name,
      )
    ) {
      delete env[name];
    }
  }
  return env;
}
