/** The command line as functions, for programs that bring it with them. */
export { EXIT, EXIT_CODES } from './outcome.js';
export { main } from './program.js';
export { type Input, type Io, type IoParts, makeIo, note, type Output, print } from './terminal/io.js';
export type { Style } from './terminal/style.js';
export { type Answerer, approveAll, askPerson, describeRequest } from './view/ask.js';
export { jsonView } from './view/json.js';
export { type LiveOptions, liveView, summary } from './view/live.js';
export { type Asker, type Ended, type FollowOptions, follow, type View } from './view/view.js';
