/** Holds a list of middleware to the laws in one situation. */
import { NOBODY_WAITED, type Observed, observe } from './bench.js';
import type { Member } from './box.js';
import type { Situation } from './conversation.js';
import { LAWS } from './laws.js';

export interface Breach {
  readonly law: string;
  /** The list, the situation, the law and what is wrong. */
  readonly message: string;
}

/** What is wrong, law by law; `undefined` where the situation cannot come about. */
export async function breachesOf(
  list: readonly Member[],
  situation: Situation,
  {
    cassette = [],
    tamper = (same) => same,
  }: { readonly cassette?: readonly string[]; readonly tamper?: (observed: Observed) => Observed } = {},
): Promise<readonly Breach[] | undefined> {
  const where = `${namesOf(list)}, ${situation.outcome} (${situation.at})`;
  let observed: Observed;
  try {
    const made = await observe(list, situation, cassette);
    if (made === NOBODY_WAITED) return undefined;
    observed = tamper(made);
  } catch (error) {
    const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return [{ law: 'a run ends', message: `${where}: ${what}` }];
  }
  return LAWS.flatMap(({ law, breach }) => {
    const problem = breach(observed, list);
    return problem === undefined ? [] : [{ law, message: `${where}: ${law}. ${problem}` }];
  });
}

/** From the outside in. */
export function namesOf(list: readonly Member[]): string {
  return list.map(({ name }) => name).join(' > ');
}
