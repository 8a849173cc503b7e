/** The arguments of a policy have the types of the tool. */
import { type ToolContext, tool } from 'allium';
import { approval, ask, policyFor } from 'allium/middleware/approval';
import { expectTypeOf } from 'vitest';
import { z } from 'zod';

const pay = tool({
  name: 'pay',
  description: '',
  input: z.object({ amount: z.string().transform(Number), to: z.string().optional() }),
  execute: () => 'paid',
});

approval({
  policy: {
    search: 'allow',
    ...policyFor(pay, (ctx) => {
      expectTypeOf(ctx).toEqualTypeOf<ToolContext<{ amount: number; to?: string | undefined }>>();
      return ctx.args.amount > 100 ? ask({ limit: 100 }) : 'allow';
    }),
  },
});

// @ts-expect-error A misspelt argument
policyFor(pay, (ctx) => (ctx.args.amuont > 100 ? 'ask' : 'allow'));
// @ts-expect-error A misspelt verdict
policyFor(pay, () => 'alow');
// @ts-expect-error Without the tool nobody knows the arguments, so a misspelt one is found here as well
approval({ policy: { pay: (ctx) => (ctx.args.amuont > 100 ? 'ask' : 'allow') } });

approval({
  policy: (ctx) => {
    expectTypeOf(ctx.args).toBeUnknown();
    if (!ctx.is(pay)) return 'allow';
    expectTypeOf(ctx.args.amount).toBeNumber();
    return ctx.args.amount > 100 ? 'ask' : 'allow';
  },
});
