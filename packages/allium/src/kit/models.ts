/** Models: streams and responses, tokens, prices, and counting what a whole run uses. */

export type { Hold as MeterHold, Meter, Spent as MeteredUsage } from '../kernel/context/meter.js';
export { meterUsage } from '../kernel/context/usage-meters.js';
export { toMessages } from '../kernel/messages/message-input.js';
export { costOf } from '../kernel/messages/model.js';
export { estimateInputTokens } from '../kernel/model/estimates.js';
export {
  partialUsage,
  ResponseAssembler,
  responseParts,
} from '../kernel/stream/assemble.js';
export { checkPrice, priceReader } from './prices.js';
export { systemBlocksOf } from './system-blocks.js';
