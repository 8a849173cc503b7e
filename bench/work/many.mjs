/** Many sessions at once, all of them from the first turn on. */

/**
 * The compiler needs about 50,000 turns until it has nothing left to do, so a process is warm only after five rounds.
 * Each phase has this many rounds.
 */
const PHASES = { cold: 1, warming: 4, warm: 10 };
export const ROUNDS = Object.values(PHASES).reduce((sum, rounds) => sum + rounds, 0);

/**
 * Lets `sessions` sessions work side by side, in one round after the other, each with new ones. Returns what a turn took in
 * each phase: of the processor, collecting garbage included, and of the clock.
 *
 * @param {(id: string) => Promise<number>} session does the work of one and returns its turns
 */
export async function timeMany(session, { sessions }) {
  const figures = {};
  let round = 0;
  for (const [phase, rounds] of Object.entries(PHASES)) {
    const { cpu, perSecond } = await timeRounds(
      session,
      sessions,
      Array.from({ length: rounds }, () => round++),
    );
    figures[`${phase}Cpu`] = cpu;
    figures[`${phase}PerSecond`] = perSecond;
  }
  return figures;
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
