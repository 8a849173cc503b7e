/** The test kit: for this repository and for everyone who writes middleware, models or stores. */
export { type Collected, collect } from './collect.js';
export { type FakeClock, fakeClock } from './fake-clock.js';
export type { LawReport, RunnerOptions, Skips } from './law-runner.js';
export {
  type Answer,
  chunks,
  failWith,
  hang,
  type Script,
  type ScriptedModel,
  type ScriptedModelOptions,
  type ScriptStep,
  scriptedModel,
  text,
  toolCalls,
} from './scripted-model.js';
export {
  type CheckMiddlewareOptions,
  checkMiddleware,
  type Facet,
  type MiddlewareFactory,
  type MiddlewareLaw,
  type Scenario,
  type TestMiddlewareOptions,
  testMiddleware,
} from './test-middleware.js';
export {
  type CapabilityOptions,
  type CheckModelOptions,
  checkModel,
  type ModelLaw,
  type RequestOptions,
  type TestModelOptions,
  testModel,
} from './test-model.js';
export {
  type CheckStoreOptions,
  checkStore,
  type StoreLaw,
  type TestStoreOptions,
  testStore,
} from './test-store.js';
