/** Many sessions at once, all of them from the first turn on. */

/**
 * Lets `sessions` sessions work side by side, `rounds` times with new ones, and returns what a turn took: of the processor,
 * collecting garbage included, and of the clock. `cold` is the first round, `warm` the last.
 *
 * @param {(id: string) => Promise<number>} session does the work of one and returns its turns
 */
export async function timeMany(session, { sessions, rounds }) {
  const taken = [];
  for (let round = 0; round < rounds; round++) {
    const cpu = process.cpuUsage();
    const start = performance.now();
    const turns = await Promise.all(Array.from({ length: sessions }, (_, i) => session(`${round}-${i}`)));
    const wallMs = performance.now() - start;
    const { user, system } = process.cpuUsage(cpu);
    const did = turns.reduce((sum, count) => sum + count, 0);
    taken.push({ cpu: (user + system) / did, perSecond: (did / wallMs) * 1000 });
  }
  const [cold, warm] = [taken[0], taken.at(-1)];
  return {
    coldCpu: cold.cpu,
    warmCpu: warm.cpu,
    coldPerSecond: cold.perSecond,
    warmPerSecond: warm.perSecond,
  };
}
