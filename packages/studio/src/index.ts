/** Allium Studio: runs, what the model received, the onion of middleware, approvals and money, in a browser. */
export { startDemo } from './demo.js';
export { type Studio, type StudioOptions, startStudio } from './start.js';
