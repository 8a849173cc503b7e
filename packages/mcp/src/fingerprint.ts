/** Checks whether a server still describes a tool as it did. */

import { createHash } from 'node:crypto';
import type { Tool as ServerTool } from '@modelcontextprotocol/client';
import { AlliumError } from 'allium';
import { canonicalJson } from 'allium/kit';
import type { Settings } from './options.js';

/** A cryptographic hash: the server must not be able to find another description that has the same one. */
export function fingerprintOf({ name, title, description, inputSchema, annotations }: ServerTool): string {
  return sha256(canonicalJson({ name, title, description, inputSchema, annotations })).slice(0, 22);
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** Catches a server that first describes a tool harmlessly and changes it later. */
export function checkUnchanged(
  { name: server, pins, onChange }: Settings,
  tool: string,
  now: string,
  before: string | undefined,
): void {
  const pinned = pins?.[tool];
  const wanted = pinned ?? (onChange === 'error' ? before : undefined);
  if (wanted === undefined || wanted === now) return;
  const since = pinned === undefined ? 'within this session' : 'since it was pinned';
  const remedy = pinned === undefined ? "set `onChange: 'allow'` or begin a new session" : 'change `pins`';
  throw new AlliumError(
    'MCP_TOOL_CHANGED',
    `MCP server "${server}" changed the description of its tool "${tool}" ${since} (fingerprint ${now}, before ${wanted}). Read the new description; then ${remedy}.`,
    { data: { server, tool, before: wanted, now } },
  );
}
