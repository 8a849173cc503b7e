/** Laws as data: how they are checked one by one, declared as tests, and skipped with a reason. */

import { AlliumError } from '../index.js';
import { closestName, describeValue, invalidOption, messageOf } from '../kit/index.js';

export interface Law<Name extends string, Context> {
  readonly law: Name;
  /** What holds, in one or two sentences: for the reference page and for the test that fails. */
  readonly statement: string;
  /** Says what is missing to check it, if anything: "It needs `failing`." */
  readonly needs?: (context: Context) => string | undefined;
  /** Throws if the law doesn't hold. Checks one promise, so that the failure has the right name. */
  readonly check: (context: Context) => Promise<void>;
}

export interface LawReport<Name extends string = string> {
  readonly law: Name;
  readonly ok: boolean;
  /** What was expected and what happened. */
  readonly error?: string;
  /** Why the law was not checked. */
  readonly skipped?: string;
}

/** Laws that do not hold, each with the reason. */
export type Skips<Name extends string> = Partial<Readonly<Record<Name, string>>>;

export interface RunnerOptions {
  /** The title of the suite. */
  readonly name?: string;
  /** `it` of your test runner. @default the global one */
  readonly it?: (name: string, fn: () => Promise<void>) => unknown;
  /** `describe` of your test runner. @default the global one */
  readonly describe?: (name: string, fn: () => void) => unknown;
}

/** Checks every law and reports by name. A law that lacks something it needs is reported as skipped. */
export async function checkLaws<Name extends string, Context>(
  laws: readonly Law<Name, Context>[],
  context: Context,
  skip: Skips<Name> = {},
): Promise<readonly LawReport<Name>[]> {
  checkSkips(laws, skip);
  const reports: LawReport<Name>[] = [];
  for (const { law, needs, check } of laws) {
    const skipped = skip[law] ?? needs?.(context);
    if (skipped !== undefined) {
      reports.push({ law, ok: true, skipped });
      continue;
    }
    try {
      await check(context);
      reports.push({ law, ok: true });
    } catch (error) {
      reports.push({ law, ok: false, error: messageOf(error) });
    }
  }
  return reports;
}

/** Declares one test per law. A law that can't be checked has to be in `skip`. */
export function declareLaws<Name extends string, Context>(
  laws: readonly Law<Name, Context>[],
  context: Context,
  skip: Skips<Name> = {},
  { name = 'laws', it = runnerFunction('it'), describe = runnerFunction('describe') }: RunnerOptions = {},
): void {
  checkSkips(laws, skip);
  describe(name, () => {
    for (const { law, statement, needs, check } of laws) {
      // Skipped laws are left out instead of being marked, so that a gate that fails on skipped tests stays usable.
      if (skip[law] !== undefined) continue;
      it(law, async () => {
        const missing = needs?.(context);
        if (missing !== undefined) {
          throw new Error(
            `The law "${law}" cannot be tried. ${missing} Give it, or declare why the law does not apply: skip: { '${law}': 'reason' }.`,
          );
        }
        try {
          await check(context);
        } catch (error) {
          throw new Error(`${messageOf(error)}\nThe law "${law}" says: ${statement}`, { cause: error });
        }
      });
    }
  });
}

function checkSkips(
  laws: readonly { readonly law: string }[],
  skip: Readonly<Record<string, unknown>>,
): void {
  const names = laws.map(({ law }) => law);
  for (const [law, reason] of Object.entries(skip)) {
    if (!names.includes(law)) {
      const near = closestName(law, names);
      throw new AlliumError(
        'INVALID_OPTION',
        `\`skip\` names ${describeValue(law)}, which is not a law.${near ? ` Did you mean "${near}"?` : ''} The laws: ${names.join(', ')}.`,
      );
    }
    if (typeof reason !== 'string' || reason === '')
      throw invalidOption(`skip["${law}"]`, 'the reason, as text', reason);
  }
}

function runnerFunction<K extends 'it' | 'describe'>(name: K): NonNullable<RunnerOptions[K]> {
  const found = (globalThis as Record<string, unknown>)[name];
  if (typeof found === 'function') return found as NonNullable<RunnerOptions[K]>;
  throw invalidOption(name, `the \`${name}\` of your test runner (there is no global one)`, found);
}
