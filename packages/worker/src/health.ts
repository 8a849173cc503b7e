/** Whether the parts that a worker needs answer. */

/** How long Redis and the store may take to be called healthy. */
const ANSWER_MS = 2000;

/** The names of the parts that don't answer in time. */
export async function notAnswering(
  asked: Readonly<Record<string, () => unknown>>,
): Promise<readonly string[]> {
  const names = Object.keys(asked);
  const well = await Promise.all(names.map((name) => answers(asked[name]!)));
  return names.filter((_, i) => !well[i]);
}

async function answers(ask: () => unknown): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ANSWER_MS);
  });
  try {
    return await Promise.race([Promise.resolve(ask()).then(() => true), late]);
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}
