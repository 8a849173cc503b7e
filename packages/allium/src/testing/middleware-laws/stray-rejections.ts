/** Catches unhandled rejections, which would otherwise end the process or fail another test. */

const catching = new Set<unknown[]>();
let others: readonly ((reason: unknown, promise: Promise<unknown>) => void)[] = [];

/** Runs `work` and returns what was rejected meanwhile without being handled. Other listeners wait until then. */
export async function strayRejections(work: () => Promise<void>): Promise<readonly unknown[]> {
  const caught: unknown[] = [];
  if (catching.size === 0) takeOver();
  catching.add(caught);
  try {
    await work();
    // Node reports them when the microtasks are done.
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    catching.delete(caught);
    if (catching.size === 0) handBack();
  }
  return caught;
}

function takeOver(): void {
  others = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', keep);
}

function handBack(): void {
  process.removeListener('unhandledRejection', keep);
  for (const listener of others) process.on('unhandledRejection', listener);
}

function keep(reason: unknown): void {
  for (const caught of catching) caught.push(reason);
}
