/** Many sessions at once, all of them from the first turn on. */

/**
 * Lets `sessions` sessions work side by side, `rounds` times with new ones, and returns what a turn took: of the processor,
 * collecting garbage included, and of the clock. `cold` is the first round, `warm` all others.
 *
 * @param {(id: string) => Promise<number>} session does the work of one and returns its turns
 */
export async function timeMany(session, { sessions, rounds }) {
  const cold = await timeRounds(session, sessions, [0]);
  const warm = await timeRounds(
    session,
    sessions,
    Array.from({ length: rounds - 1 }, (_, i) => i + 1),
  );
  return {
    coldCpu: cold.cpu,
    warmCpu: warm.cpu,
    coldPerSecond: cold.perSecond,
    warmPerSecond: warm.perSecond,
  };
}

async function timeRounds(session, sessions, rounds) {
  const cpu = process.cpuUsage();
  const start = performance.now();
  let turns = 0;
  for (const round of rounds) {
    const did = await Promise.all(Array.from({ length: sessions }, (_, i) => session(`${round}-${i}`)));
    turns += did.reduce((sum, count) => sum + count, 0);
  }
  const { user, system } = process.cpuUsage(cpu);
  return { cpu: (user + system) / turns, perSecond: (turns / (performance.now() - start)) * 1000 };
}
