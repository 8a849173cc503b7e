/** The command line as a function, for programs that bring it with them. */
export { EXIT, EXIT_CODES } from './outcome.js';
export { main } from './program.js';
export { type Io, type IoParts, makeIo } from './terminal/io.js';
