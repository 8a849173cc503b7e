/**
 * `allium/kit`: what authors of middleware, models and tools need beside the public names of `allium`. The middleware of
 * this package are written with it, so yours can do whatever ours can.
 */
export * from './answers.js';
export * from './calls.js';
export * from './children.js';
export * from './errors.js';
export * from './folders.js';
export * from './journal.js';
export * from './models.js';
export * from './options.js';
export * from './sinks.js';
export * from './tools.js';
export * from './tracing.js';
export * from './values.js';
