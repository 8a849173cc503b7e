/** Breaks `no-mutation`: it writes on the model of its caller. */

import { defineMiddleware, isControl, type Middleware } from '../../../index.js';

export function scribbling(): Middleware {
  return defineMiddleware({
    name: 'scribbling',
    beforeModel(ctx) {
      (ctx.model as { lastTurn?: number }).lastTurn = ctx.turn;
    },
  });
}

/** Breaks it in secret: it ignores the errors about frozen objects. */
export function scribblingInSecret(): Middleware {
  return defineMiddleware({
    name: 'scribbling-in-secret',
    beforeModel(ctx) {
      Reflect.set(ctx.model, 'lastTurn', ctx.turn);
    },
  });
}

/** Breaks it in a stream transform. */
export function scribblingOnParts(): Middleware {
  return defineMiddleware({
    name: 'scribbling-on-parts',
    beforeModel(ctx) {
      ctx.transform(() => ({
        part(part, emit) {
          if (part.type === 'text') (part as { text: string }).text = part.text.normalize();
          emit(part);
        },
      }));
    },
  });
}

/** Breaks it with an error that others see as well. */
export function annotating(): Middleware {
  return defineMiddleware({
    name: 'annotating',
    async wrapTool(ctx, next) {
      try {
        return await next();
      } catch (error) {
        if (error instanceof Error && !isControl(error))
          error.message = `${ctx.toolCall.name}: ${error.message}`;
        throw error;
      }
    },
  });
}

/** Breaks it with an error of the model. */
export function counting(): Middleware {
  return defineMiddleware({
    name: 'counting',
    async wrapModel(_, next) {
      try {
        return await next();
      } catch (error) {
        if (error instanceof Error && !isControl(error)) Object.assign(error, { attempts: 1 });
        throw error;
      }
    },
  });
}

/** Breaks it in another way: it removes a tool from somebody else's list, if that can be changed. */
export function pilfering(): Middleware {
  return defineMiddleware({
    name: 'pilfering',
    beforeModel(ctx) {
      if (!Object.isFrozen(ctx.tools)) (ctx.tools as unknown[]).pop();
    },
  });
}
