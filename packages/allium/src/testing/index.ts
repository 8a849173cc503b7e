/** The test kit: for this repository and for everyone who writes middleware, models or stores. */
export { type Collected, collect } from './collect.js';
export { type FakeClock, fakeClock } from './fake-clock.js';
export { chunks, failWith, hang, type Script, type ScriptedModel, type ScriptedModelOptions, type ScriptStep, scriptedModel, text, toolCalls } from './scripted-model.js';
