/** MCP servers as tools of an agent. An agent as an MCP server is `@allium/mcp/server`. */
export { type Mcp, type McpState, mcp } from './mcp.js';
export type { McpOptions } from './options.js';
export type { McpTool } from './tools.js';
