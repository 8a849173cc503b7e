/** The table of commands, in the order `allium --help` lists them. A new command is a file here and a line below. */
import type { AddCommand } from '../shell.js';
import { addApprove } from './approve.js';
import { addAudit } from './audit.js';
import { addChat } from './chat.js';
import { addDoctor } from './doctor.js';
import { addExplain } from './explain.js';
import { addInit } from './init.js';
import { addPlugin } from './plugin.js';
import { addReplay } from './replay.js';
import { addRun } from './run.js';
import { addSessions } from './sessions.js';
import { addTrace } from './trace.js';
import { addVersion } from './version.js';

// A web inspector (`inspect`, after trace) gets its place here when it exists.
export const COMMANDS: readonly AddCommand[] = [
  addInit,
  addRun,
  addChat,
  addExplain,
  addSessions,
  addApprove,
  addTrace,
  addReplay,
  addAudit,
  addPlugin,
  addDoctor,
  addVersion,
];
