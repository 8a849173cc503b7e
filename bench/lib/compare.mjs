/** Measures rows against each other: several rounds, every case of every row once per round, each in a fresh process. */
import { runTask } from './child.mjs';
import { summary } from './stats.mjs';

/**
 * @typedef {object} Row
 * @property {string} label
 * @property {string} contender file name in `contenders/`
 * @property {string} job its export that makes the run
 * @property {{ label: string, params: object, units: number }[]} variants its cases
 * @property {boolean} [peer] measured for comparison, with fewer repetitions
 * @property {string} [node] the Node to run it on, where it is not this one
 */

/**
 * Returns one entry per row: `{ label, about, cells }`, where `cells` maps a variant's label to its summary,
 * or `{ label, error }`.
 *
 * @param {Row[]} rows
 * @param {{ together?: 'rows' | 'cases' }} [order] what is measured right after each other, since it will be compared:
 *   the same case of all rows, or the cases of one row
 */
export async function compare(rows, settings, progress, { together = 'rows' } = {}) {
  const collected = rows.map((row) => ({
    row,
    taken: new Map(row.variants.map(({ label }) => [label, []])),
    error: undefined,
    about: undefined,
  }));
  const steps = together === 'rows' ? caseByCase(collected) : rowByRow(collected);
  for (let round = 0; round < settings.rounds; round++) {
    // Every other round runs backwards, so that nothing always follows the same neighbour.
    for (const { entry, variant } of round % 2 === 0 ? steps : [...steps].reverse()) {
      if (entry.error || (entry.row.peer && round >= settings.peerRounds)) continue;
      progress(`${entry.row.label}, ${variant.label}, round ${round + 1} of ${settings.rounds}`);
      const { contender, job, peer, node } = entry.row;
      const { params, units } = variant;
      const timing = peer ? settings.peerTiming : settings.timing;
      const answer = await runTask({ contender, job, params, units, timing }, node);
      entry.error = answer.error;
      entry.about = answer.about;
      if (!answer.error) entry.taken.get(variant.label).push(answer.figures);
    }
  }
  return collected.map(({ row, taken, error, about }) => {
    if (error) return { label: row.label, error };
    return {
      label: row.label,
      about,
      cells: new Map([...taken].map(([label, values]) => [label, summary(values)])),
    };
  });
}

function rowByRow(collected) {
  return collected.flatMap((entry) => entry.row.variants.map((variant) => ({ entry, variant })));
}

function caseByCase(collected) {
  const steps = rowByRow(collected);
  const labels = new Set(steps.map(({ variant }) => variant.label));
  return [...labels].flatMap((label) => steps.filter(({ variant }) => variant.label === label));
}

/** The summary of one cell, or undefined where its row failed. */
export function cell(results, label, variant) {
  return results.find((result) => result.label === label)?.cells?.get(variant);
}

/**
 * Runs a task that reports its own figures, `repeats` times per row; figures become summaries by name.
 *
 * @param {{ atOnce?: boolean }} [how] `atOnce` starts the rows side by side: for those that only wait
 */
export async function probe(rows, repeats, progress, { atOnce = false } = {}) {
  const collected = rows.map((row) => ({ row, answers: [], error: undefined, about: undefined }));
  const ask = async (entry, repeat) => {
    if (entry.error) return;
    progress(`${entry.row.label}, ${repeat + 1} of ${repeats}`);
    const answer = await runTask(entry.row);
    entry.error = answer.error;
    entry.about = answer.about;
    if (!answer.error) entry.answers.push(answer.figures);
  };
  for (let repeat = 0; repeat < repeats; repeat++) {
    if (atOnce) await Promise.all(collected.map((entry) => ask(entry, repeat)));
    else for (const entry of collected) await ask(entry, repeat);
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
