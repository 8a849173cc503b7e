import { defineState, type ModelContext, requestKey, type StateCell } from 'allium';
import { expectTypeOf } from 'vitest';

// Everything JSON can hold, interfaces and recursive types included.
interface Note {
  readonly text: string;
  readonly tags?: readonly string[];
  readonly place: { readonly x: number; readonly y: number | null } | undefined;
}
interface Tree {
  readonly name: string;
  readonly children: readonly Tree[];
}
type Step = { readonly type: 'ask'; readonly who: string } | { readonly type: 'wait'; readonly ms: number };

expectTypeOf(defineState<Note[]>({ name: 'a', scope: 'run', initial: [] })).toEqualTypeOf<
  StateCell<Note[]>
>();
expectTypeOf(
  defineState<Tree>({ name: 'b', scope: 'session', initial: { name: 'root', children: [] } }),
).toEqualTypeOf<StateCell<Tree>>();
expectTypeOf(defineState<Step | null>({ name: 'c', scope: 'run', initial: null })).toEqualTypeOf<
  StateCell<Step | null>
>();
expectTypeOf(defineState({ name: 'd', scope: 'run', initial: { count: 0, list: ['a'] } })).toEqualTypeOf<
  StateCell<{ count: number; list: string[] }>
>();
expectTypeOf(
  defineState<readonly [string, number]>({ name: 'e', scope: 'run', initial: ['a', 1] }),
).toEqualTypeOf<StateCell<readonly [string, number]>>();
expectTypeOf(defineState<Record<string, unknown>>({ name: 'f', scope: 'run', initial: {} })).toEqualTypeOf<
  StateCell<Record<string, unknown>>
>();

// Anything JSON can't hold is a compile error, wherever it stands.
declare const date: Date;
// @ts-expect-error: a Date
defineState<{ at: Date }>({ name: 'g', scope: 'run', initial: { at: date } });
// @ts-expect-error: a Date in a list in an optional field
defineState<{ list?: readonly { at: Date }[] }>({
  name: 'h',
  scope: 'session',
  initial: { list: [{ at: date }] },
});
// @ts-expect-error: a Date, inferred
defineState({ name: 'i', scope: 'run', initial: { at: date } });
// @ts-expect-error: a Map
defineState({ name: 'j', scope: 'run', initial: new Map<string, number>() });
// @ts-expect-error: a Set
defineState<{ seen: Set<string> }>({ name: 'k', scope: 'run', initial: { seen: new Set() } });
// @ts-expect-error: a function
defineState({ name: 'l', scope: 'run', initial: { act: () => 1 } });
// @ts-expect-error: a bigint
defineState({ name: 'm', scope: 'run', initial: 1n });
class Account {
  balance = 0;
  pay(): void {}
}
// @ts-expect-error: an object with methods
defineState({ name: 'n', scope: 'run', initial: new Account() });

// Cells of a call are not journaled and hold anything.
expectTypeOf(defineState({ name: 'o', scope: 'call', initial: new Map<string, Date>() })).toEqualTypeOf<
  StateCell<Map<string, Date>>
>();

// Live cells of a run hold anything, too. Their first value is given, or made for each run.
expectTypeOf(
  defineState({ name: 'p', scope: 'run', durable: false, create: () => new Map<string, Date>() }),
).toEqualTypeOf<StateCell<Map<string, Date>>>();
expectTypeOf(
  defineState<Date | undefined>({ name: 'q', scope: 'run', durable: false, initial: undefined }),
).toEqualTypeOf<StateCell<Date | undefined>>();
// @ts-expect-error: nothing outlives a run without a journal
defineState({ name: 'r', scope: 'session', durable: false, initial: 0 });

// A cache makes the key of the call it surrounds.
declare const ctx: ModelContext;
expectTypeOf(requestKey(ctx)).toEqualTypeOf<string>();
// @ts-expect-error: a key without a model
requestKey({ messages: [] });
