/** Models: streams and responses, tokens, prices, and counting what a whole run uses. */
export {
  type Hold as MeterHold,
  type Meter,
  meter as meterUsage,
  type Spent as MeteredUsage,
} from '../kernel/context/usage-meters.js';
export {
  Assembler as ResponseAssembler,
  partsOf as responseParts,
  toldInPart as partialUsage,
} from '../kernel/guards/assemble.js';
export { inputTokens as estimateInputTokens } from '../kernel/model/estimates.js';
export { costOf } from '../kernel/protocol/limits.js';
export { toMessages } from '../kernel/protocol/message-input.js';
export { checkPrice, priceReader } from '../kernel/protocol/prices.js';
