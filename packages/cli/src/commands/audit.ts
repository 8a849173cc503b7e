/** `allium audit`: checks that the log is still as it was written. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { LoadedConfig } from '@allium/config';
import type { Store } from 'allium';
import type { AuditReport } from 'allium/middleware/audit-log';
import { codeOf, EXIT, UsageError } from '../outcome.js';
import {
  type AddCommand,
  allSessions,
  findSession,
  programName,
  type Shell,
  unlessDamaged,
  withStore,
} from '../shell.js';
import { note, print, printJson } from '../terminal/io.js';
import { count, word } from '../terminal/text.js';

interface Options {
  readonly session?: string;
  readonly keyEnv?: string;
  readonly json?: boolean;
}

export const addAudit: AddCommand = (program, shell) => {
  const audit = program
    .command('audit')
    .summary('check the audit log')
    .description('Works with the log that the middleware `audit-log` writes.');
  audit
    .command('verify')
    .summary('find lines that are missing, edited, moved or cut off')
    .description(
      'Compares the audit log with the end of its chain in the journal of each session. File and key ' +
        'are those of `audit-log` in the config. Exit code 1: something is wrong with the log.',
    )
    .argument('[file]', 'the log, if it is not where the config says')
    .option('-s, --session <id>', 'check only this session')
    .option('--key-env <name>', 'the environment variable that holds the key')
    .option('--json', 'print the reports as JSON')
    .action((file: string | undefined, options: Options) => verify(shell, file, options));
};

async function verify(shell: Shell, file: string | undefined, options: Options): Promise<void> {
  const { io } = shell;
  const { auditHead, verifyAudit } = await import('allium/middleware/audit-log');
  await withStore(shell, async (store, loaded) => {
    const found = await auditOptions(loaded);
    const path = file === undefined ? found.file && resolve(loaded.dir, found.file) : resolve(io.cwd, file);
    if (!path)
      throw new UsageError(
        `The config has no \`audit-log\` with a file. Name it: ${programName(io)} audit verify <file>`,
      );
    const log = readLog(path, file !== undefined);
    const key = keyOf(shell, options.keyEnv) ?? found.key;
    const reports: ({ session: string } & AuditReport)[] = [];
    for (const session of await sessionsOf(shell, store, options.session)) {
      const head = await unlessDamaged(shell, () => auditHead(store, session, found.name));
      // Nobody can tell whether all its lines are there.
      if (head === undefined) shell.exitCode = EXIT.failed;
      else if (head.seq > 0 || options.session !== undefined)
        reports.push({ session, ...verifyAudit(log, head, key) });
    }
    if (reports.some(({ ok }) => !ok)) shell.exitCode = EXIT.failed;
    if (options.json) return printJson(io, { file: path, reports });
    if (reports.length === 0) return note(io, `No session in the store has lines in ${path}.`);
    for (const report of reports) for (const line of reportLines(shell, report)) print(io, line);
  });
}

function reportLines(
  { io }: Shell,
  { session, ok, verified, unanchored, problems }: { session: string } & AuditReport,
): string[] {
  const more = unanchored > 0 ? `, ${unanchored} written after the journal's last word` : '';
  const head = ok ? io.out.green('ok     ') : io.out.red('BROKEN ');
  return [
    `${head} ${word(session)}: ${count(verified, 'line')} verified${more}`,
    ...problems.map(({ kind, seq, line }) => {
      const where = [
        seq === undefined ? '' : `line ${seq} of the session`,
        line === undefined ? '' : `line ${line} of the file`,
      ];
      return `  ${kind}: ${where.filter(Boolean).join(', ')}`;
    }),
  ];
}

async function sessionsOf(shell: Shell, store: Store, wanted: string | undefined): Promise<string[]> {
  if (wanted !== undefined) return [await findSession(shell, store, wanted)];
  const ids: string[] = [];
  for await (const { sessionId } of allSessions(store)) ids.push(sessionId);
  return ids;
}

function readLog(path: string, named: boolean): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    // A deleted log is exactly what this has to find: everything the journal knows about is missing.
    if (!named && codeOf(cause) === 'ENOENT') return '';
    throw new UsageError(`The log ${path} cannot be read.`, { cause });
  }
}

function keyOf({ io }: Shell, name: string | undefined): string | undefined {
  if (name === undefined) return undefined;
  const key = io.env[name];
  if (!key) throw new UsageError(`The environment variable ${name} is not set.`);
  return key;
}

interface AuditOptions {
  readonly file?: string;
  readonly key?: string;
  readonly name?: string;
}

/** What the config says about the first `audit-log` in its chain. */
async function auditOptions({ config }: LoadedConfig): Promise<AuditOptions> {
  const { Secret } = await import('@allium/config');
  const text = (value: unknown) => {
    if (value instanceof Secret) return value.reveal();
    return typeof value === 'string' ? value : undefined;
  };
  const base = Object.entries(config.plugins ?? {}).find(([name]) => isAuditLog(name))?.[1] ?? {};
  for (const one of config.middleware?.chain ?? []) {
    const use = typeof one === 'string' ? one : 'use' in one ? one.use : undefined;
    if (typeof use !== 'string' || !isAuditLog(use)) continue;
    const { sink, key, name, as } = { ...base, ...(typeof one === 'string' ? {} : one) } as Record<
      string,
      unknown
    >;
    const file = text((sink as { file?: unknown } | undefined)?.file);
    return { file, key: text(key), name: text(as) ?? text(name) };
  }
  return {};
}

function isAuditLog(name: string): boolean {
  return name.replace(/[-_]/g, '').toLowerCase() === 'auditlog';
}
