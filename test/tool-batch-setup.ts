// What tests of tool batches share: tools, calls of them, and tools that wait until they are released.

import { type Tool, type ToolContext, textOf, tool } from 'allium';
import { toolCalls } from 'allium/testing';
import { z } from 'zod';
import { deferred, settle } from './run-checks.js';

export type Execute = (args: { n?: number }, ctx: ToolContext) => unknown;
export const make = (name: string, execute: Execute, options: Partial<Tool> = {}): Tool =>
  tool({
    name,
    description: '',
    input: z.object({ n: z.number().optional() }),
    execute,
    ...(options as object),
  });
export const calls = (...names: string[]) =>
  toolCalls(...names.map((name, n) => ({ name, args: { n }, id: `c${n}` })));
export const results = (messages: readonly { role: string; content: readonly { type: string }[] }[]) =>
  messages.filter(({ role }) => role === 'tool').map(textOf);

/** Tools that wait until they are let go, and a record of who runs when. */
export function gates() {
  const open = new Map<number, ReturnType<typeof deferred<void>>>();
  const log: string[] = [];
  const execute: Execute = async ({ n = 0 }) => {
    log.push(`+${n}`);
    const gate = deferred();
    open.set(n, gate);
    await gate.promise;
    log.push(`-${n}`);
    return `r${n}`;
  };
  const release = async (n: number) => {
    open.get(n)!.resolve();
    await settle();
  };
  return { execute, log, release };
}
