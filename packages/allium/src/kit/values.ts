/** Values: keys made of content, JSON, frozen copies, promises. */
export { isPlainObject, isRecord, isThenable } from '../kernel/lib/errors.js';
export { canonicalJson, hash as hashText, toolCallKey } from '../kernel/lib/hash.js';
export { hasRepeatedKeys, toStoredJson } from '../kernel/lib/json-texts.js';
export { deepFreeze, freezeMessage } from '../kernel/messages/messages.js';
