import { Agent, memoryStore } from 'allium';
import { scriptedModel } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { createQueue, createWorker } from './index.js';

const connection = 'redis://127.0.0.1:1';

describe('wrong options', () => {
  it.each<[string, unknown]>([
    ['`connection` to be redis://host:port', {}],
    ['`connection` to be redis://host:port', { connection: '' }],
    ['`connection` to be redis://host:port', { connection: ['127.0.0.1', 6379] }],
    ['`prefix` to be text without braces', { connection, prefix: '{a}' }],
    ['`store` to be an object with append()', { connection, store: null }],
    ['`store` to be an object with append()', { connection, store: {} }],
    ['`show` to be an object', { connection, show: true }],
    ['`rateLimits` to be an object', { connection, rateLimits: null }],
    ['`rateLimits` to be an object', { connection, rateLimits: 5 }],
    ['`clock` to be an object with now(), setTimer()', { connection, clock: Date }],
    ['`timeoutMs` to be an integer ≥ 1', { connection, timeoutMs: 0 }],
    ['Unknown option `url` of createQueue()', { url: connection }],
  ])('of createQueue(): %s', (words, options) => {
    expect(() => createQueue(options as never)).toThrow(words);
  });

  it.each<[string, unknown]>([
    ['`store` to be an object with append()', { store: undefined }],
    ['`agents` to be an agent, or agents by name', { agents: [] }],
    ['`concurrency` to be an integer ≥ 1', { concurrency: 0 }],
    ['`drainOn` to be a list', { drainOn: 'SIGTERM' }],
    ['`drainOn[0]` to be the name of a signal', { drainOn: ['TERM'] }],
    ['`clock` to be an object with now(), setTimer()', { clock: null }],
  ])('of createWorker(): %s', (words, options) => {
    const agents = new Agent({ model: scriptedModel([]) });
    const all = { agents, store: memoryStore(), connection, ...(options as object) };
    expect(() => createWorker(all as never)).toThrow(words);
  });
});
