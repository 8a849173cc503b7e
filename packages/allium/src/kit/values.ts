/** Values: keys made of content, JSON, frozen copies, promises. */
import { toJson } from '../kernel/lib/frozen-json.js';

export { frozenMessages } from '../kernel/context/request-checks.js';
export { isPlainObject, isRecord, isThenable } from '../kernel/lib/errors.js';
export { isFrozenJson } from '../kernel/lib/frozen-json.js';
export { canonicalJson, hash as hashText, toolCallKey } from '../kernel/lib/hash.js';
export { hasRepeatedKeys, toStoredJson } from '../kernel/lib/json-texts.js';
export { deepFreeze, freezeMessage } from '../kernel/messages/messages.js';
export { patched as patchedResult } from '../kernel/messages/tool-result.js';

/** A frozen copy of a JSON value, without undefined properties. Throws for anything else. */
export function frozenJson<T>(value: T): T {
  return toJson(value, 'value');
}
