/** Values: keys made of content, JSON, frozen copies, promises. */
export { isRecord, isThenable } from '../kernel/lib/errors.js';
export { isPlain as isPlainObject } from '../kernel/lib/frozen-json.js';
export { callHash as toolCallKey, canonical as canonicalJson, hash as hashText } from '../kernel/lib/hash.js';
export { asJson as toStoredJson, hidesText as hasRepeatedKeys } from '../kernel/lib/json-texts.js';
export { deepFreeze, freezeMessage } from '../kernel/messages/messages.js';
