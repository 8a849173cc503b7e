/** Allium with five middleware that change something, traced or not. */
import { userMessage } from 'allium';
import { callingModel } from '../work/models.mjs';
import { executed } from '../work/tool.mjs';
import { agentFor } from './allium.mjs';

export const what = '`agent.run()` with five middleware that act in every turn';

const note = userMessage('Be brief.');

function five() {
  return [
    { name: 'prompting', transformSystemPrompt: (prompt) => `${prompt}\nAnswer in English.` },
    {
      name: 'setting',
      beforeModel(ctx) {
        ctx.settings = { ...ctx.settings, temperature: 0 };
      },
    },
    {
      name: 'reminding',
      async wrapTool(_ctx, next) {
        const result = await next();
        return { ...result, content: [...result.content, { type: 'text', text: 'Mind the sum.' }] };
      },
    },
    {
      name: 'timing',
      async wrapModel(_ctx, next) {
        await next();
      },
      async wrapTool(_ctx, next) {
        await next();
      },
    },
    { name: 'noting', afterToolCall: () => ({ details: { note } }) },
  ];
}

export function turns({ turns, trace }) {
  const agent = agentFor(callingModel(turns), turns, { middleware: five(), ...(trace && { trace }) });
  return async () => {
    const before = executed.count;
    const { stop, trace: made } = await agent.run('go');
    if (stop.reason !== 'final') throw new Error(`Not a whole run: ${stop.reason}`);
    if ((made !== undefined) !== (trace !== undefined)) throw new Error('Traced, or not, against the wish.');
    return executed.count - before;
  };
}
