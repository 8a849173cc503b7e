/** A fresh process for one case of one contender. Gets its task as an argument, sends its figures back. */
import { measure } from './lib/measure.mjs';

const task = JSON.parse(process.argv[2]);

try {
  const contender = await import(`./contenders/${task.contender}.mjs`);
  const job = contender[task.job];
  const figures = task.probe
    ? await job(task.probe)
    : await measure(await job(task.params), task.units, task.timing);
  process.send({ about: { name: task.contender, what: contender.what }, figures }, () => process.exit(0));
} catch (error) {
  process.send({ error: String(error?.message ?? error) }, () => process.exit(1));
}
