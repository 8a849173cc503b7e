export { handler } from '../handler.mjs';
