/** Measures rows against each other: several rounds, every row once per round, each time in a fresh process. */
import { runTask } from './child.mjs';
import { summary } from './stats.mjs';

/**
 * @typedef {object} Row
 * @property {string} label
 * @property {string} contender file name in `contenders/`
 * @property {string} job its export that makes the run
 * @property {{ label: string, params: object, units: number }[]} variants measured in the same process, in turn
 * @property {boolean} [peer] measured for comparison, with fewer repetitions
 */

/**
 * Returns one entry per row: `{ label, about, cells }`, where `cells` maps a variant's label to its summary,
 * or `{ label, error }`.
 *
 * @param {Row[]} rows
 */
export async function compare(rows, settings, progress) {
  const collected = rows.map((row) => ({ row, rounds: [], error: undefined, about: undefined }));
  for (let round = 0; round < settings.rounds; round++) {
    // Every other round runs backwards, so that no row always follows the same neighbour.
    const order = round % 2 === 0 ? collected : [...collected].reverse();
    for (const entry of order) {
      if (entry.error || (entry.row.peer && round >= settings.peerRounds)) continue;
      progress(`${entry.row.label}, round ${round + 1} of ${settings.rounds}`);
      const { contender, job, variants, peer } = entry.row;
      const answer = await runTask({
        contender,
        job,
        variants,
        timing: peer ? settings.peerTiming : settings.timing,
      });
      entry.error = answer.error;
      entry.about = answer.about;
      if (!answer.error) entry.rounds.push(answer.figures);
    }
  }
  return collected.map(({ row, rounds, error, about }) => {
    if (error) return { label: row.label, error };
    const cells = row.variants.map(({ label }, i) => [label, summary(rounds.map((figures) => figures[i]))]);
    return { label: row.label, about, cells: new Map(cells) };
  });
}

/** The summary of one cell, or undefined where its row failed. */
export function cell(results, label, variant) {
  return results.find((result) => result.label === label)?.cells?.get(variant);
}

/** Runs a task that reports its own figures, `repeats` times per row; figures become summaries by name. */
export async function probe(rows, repeats, progress) {
  const collected = rows.map((row) => ({ row, answers: [], error: undefined, about: undefined }));
  for (let repeat = 0; repeat < repeats; repeat++) {
    for (const entry of collected) {
      if (entry.error) continue;
      progress(`${entry.row.label}, ${repeat + 1} of ${repeats}`);
      const answer = await runTask(entry.row);
      entry.error = answer.error;
      entry.about = answer.about;
      if (!answer.error) entry.answers.push(answer.figures);
    }
  }
  return collected.map(({ row, answers, error, about }) => {
    if (error) return { label: row.label, error };
    const names = Object.keys(answers[0]);
    return {
      label: row.label,
      about,
      cells: new Map(names.map((name) => [name, summary(answers.map((figures) => figures[name]))])),
    };
  });
}
