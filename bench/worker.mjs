/** A fresh process for one contender in one scenario. Gets its task as an argument, sends its figures back. */
import { measure } from './lib/measure.mjs';

const task = JSON.parse(process.argv[2]);

try {
  const contender = await import(`./contenders/${task.contender}.mjs`);
  const job = contender[task.job];
  const figures = task.probe
    ? await job(task.probe)
    : await measure(
        task.variants.map(({ params, units }) => ({ run: job(params), units })),
        task.timing,
      );
  process.send({ about: { name: task.contender, what: contender.what }, figures }, () => process.exit(0));
} catch (error) {
  process.send({ error: String(error?.message ?? error) }, () => process.exit(1));
}
