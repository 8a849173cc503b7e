/** The error for a call nobody recorded: it shows how the nearest recording differs. */

import type { Line } from '../../cassette/format.js';
import type { Asked } from '../../cassette/questions.js';
import { AlliumError } from '../../index.js';
import { type Difference, describe, differences, distance } from './difference.js';
import type { Library } from './library.js';

export function miss(asked: Asked, library: Library): AlliumError {
  const what = asked.type === 'model' ? `model call (${asked.request.model})` : `call of "${asked.tool}"`;
  const head = `No recording for this ${what} of turn ${asked.turn} in ${library.name}.`;
  const advice = "Record it again; replay({ onMiss: 'passthrough' }) makes calls that were not recorded.";
  const error = (text: string, data: Record<string, unknown> = {}) =>
    new AlliumError('CASSETTE_MISS', `${head} ${text}\n${advice}`, {
      data: { seam: asked.type, key: asked.key, turn: asked.turn, ...data },
    });
  const used = library.recordings(asked).length;
  if (used > 0)
    return error(
      `It was recorded ${used === 1 ? 'once' : `${used} times`}, and this run has asked for it before.`,
    );
  const near = nearest(asked, library);
  if (!near)
    return error(
      library.lines.length === 0 ? 'The cassette is empty.' : 'It has no recordings of this kind.',
    );
  const { number: line } = near.line;
  return error(`The nearest one, on line ${line}, differs:\n${describe(near.list)}`, {
    nearest: line,
    differences: near.list,
  });
}

interface Near {
  readonly line: Line;
  readonly list: readonly Difference[];
}

/** Among the calls of the same tool, if there are any. */
function nearest(asked: Asked, library: Library): Near | undefined {
  const alike = library.lines.filter(({ entry }) => entry.type === asked.type);
  const same = alike.filter(
    ({ entry }) => asked.type === 'tool' && entry.type === 'tool' && entry.tool === asked.tool,
  );
  let best: (Near & { readonly far: number }) | undefined;
  for (const line of same.length > 0 ? same : alike) {
    const list = differences(questionOf(line, library), questionIn(asked));
    const far = distance(list);
    if (!best || far < best.far) best = { line, list, far };
  }
  return best;
}

function questionOf(line: Line, library: Library): unknown {
  const { entry } = line;
  return entry.type === 'model' ? library.requestOf(line) : { tool: entry.tool, args: entry.args };
}

function questionIn(asked: Asked): unknown {
  return asked.type === 'model' ? asked.request : { tool: asked.tool, args: asked.args };
}
