/** What other libraries call the members of a middleware, and what to write here instead. */

import { foreignTable } from '../kernel/lib/foreign-names.js';

export const FOREIGN_HOOKS = foreignTable(`
  wrapmodelcall wrapgenerate wrapstream → wrapModel
  wraptoolcall → wrapTool
  beforeagent onagentstart beforeagentstart beforeinvocation onrunstart oninvocationstart → beforeRun
  afteragent onagentend afterinvocation onfinish → afterRun
  stateschema → state
  contextschema → runOptions
  transformparams preparestep onllmstart beforemodelcall onmodelstart preparecall → beforeModel
  onstepfinish onllmend aftermodelcall onstepend → afterModel
  processinput → acceptMessage
  processinputstep preparenextturn → transformContext
  processoutputstream tripwiretriggered → guard
  processoutputresult processoutputstep → afterModelResponse
  ontoolend aftertoolinvocation → afterTool
  ontoolstart beforetoolinvocation → beforeTool
  callnext → process
  hitl humanintheloop → suspends
  overrideprovider overridemodelid → beforeModel, which sets ctx.model
`);
