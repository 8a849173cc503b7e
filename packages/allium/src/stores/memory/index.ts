/** Sessions in memory: for tests, demos and runs that need not outlive the process. */
export { memoryStore } from '../../index.js';
