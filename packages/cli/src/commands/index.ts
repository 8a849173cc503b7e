/** The table of commands, in the order `allium --help` lists them. A new command is a file here and a line below. */
import type { AddCommand } from '../shell.js';
import { addRun } from './run.js';

/** Loads the file of a command: each needs other modules, and only one of them is run. Mostly that is `run`. */
export type LoadCommand = () => Promise<AddCommand>;

export const COMMANDS: Readonly<Record<string, LoadCommand>> = {
  init: async () => (await import('./init.js')).addInit,
  run: async () => addRun,
  chat: async () => (await import('./chat.js')).addChat,
  explain: async () => (await import('./explain.js')).addExplain,
  sessions: async () => (await import('./sessions.js')).addSessions,
  approve: async () => (await import('./approve.js')).addApprove,
  trace: async () => (await import('./trace.js')).addTrace,
  studio: async () => (await import('./studio.js')).addStudio,
  replay: async () => (await import('./replay.js')).addReplay,
  audit: async () => (await import('./audit.js')).addAudit,
  worker: async () => (await import('./worker.js')).addWorker,
  enqueue: async () => (await import('./enqueue.js')).addEnqueue,
  plugin: async () => (await import('./plugin.js')).addPlugin,
  doctor: async () => (await import('./doctor.js')).addDoctor,
  version: async () => (await import('./version.js')).addVersion,
};
