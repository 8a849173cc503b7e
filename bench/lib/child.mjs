/** Runs a task in a fresh process. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const WORKER = fileURLToPath(new URL('../worker.mjs', import.meta.url));
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TIMEOUT_MS = 180_000;

/** Resolves with what the worker sent, or with `{ error }`; never rejects. `node` is the binary to run it on. */
export function runTask(task, node = process.execPath) {
  return new Promise((resolve) => {
    const child = fork(WORKER, [JSON.stringify(task)], {
      execPath: node,
      cwd: fileURLToPath(new URL('..', import.meta.url)),
      execArgv: ['--expose-gc'],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    let answer;
    let complaint = '';
    const timer = setTimeout(() => {
      answer ??= { error: `no answer within ${TIMEOUT_MS / 1000} s` };
      child.kill('SIGKILL');
    }, TIMEOUT_MS);
    child.stderr.on('data', (data) => {
      complaint = (complaint + data).slice(-2000);
    });
    child.on('message', (message) => {
      answer = message;
    });
    child.on('close', (code) => {
      clearTimeout(timer);
      answer ??= { error: `ended with code ${code}: ${complaint.trim().split('\n').at(-1)}` };
      if (answer.error) answer.error = tidy(answer.error);
      resolve(answer);
    });
  });
}

/** First line only, and no paths of this machine. */
function tidy(message) {
  return message.split('\n')[0].replaceAll(`file://${ROOT}`, '').replaceAll(ROOT, '').slice(0, 160);
}
