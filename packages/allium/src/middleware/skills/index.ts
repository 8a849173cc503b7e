/** Shows the model which skills there are, and lets it read one when it needs it. */
import {
  defineMiddleware,
  type Middleware,
  type Tool,
  type ToolResult,
  tool,
  toolResult,
} from '../../index.js';
import {
  type Fields,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  objectInput,
  readOptions,
} from '../../kit/index.js';
import { didYouMean, failure } from '../../own-tools/answers.js';
import { filesOf, findSkills, MAIN_FILE, Refused, readSkillFile, type Skill } from './folder.js';
import { bodyOf } from './front-matter.js';

export const OPTIONS = {
  /**
   * The folder of skills: each of its folders that holds a `SKILL.md` and does not begin with a dot is one.
   */
  dir: kinds.required({ ...kinds.nonEmptyText, expected: 'the path of a folder' }),
  /** The largest file of a skill that can be read, in bytes: an integer ≥ 1. @default 100_000 */
  maxBytes: kinds.withDefault(kinds.integer(1), 100_000),
  ...named('skills'),
} satisfies Fields;

export interface SkillsOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

const READ = 'read_skill';

/**
 * Lists the skills of a folder by name and description in the system prompt. The model reads their texts when it
 * needs them, with the tool `read_skill`.
 *
 * @example
 * new Agent({ model, middleware: [skills({ dir: 'skills' })] });
 */
export function skills(options: SkillsOptions): Middleware {
  const { dir, maxBytes, name, madeWith } = readOptions('skills', OPTIONS, options);
  const { skills: found, problems } = findSkills(dir);
  const reports = problems.length === 0 ? {} : reporting(problems);
  if (found.size === 0) return defineMiddleware({ name, madeWith, ...reports });
  // Made once: the same bytes for every request, so that prompt caches stay valid.
  const list = listOf([...found.values()]);
  return defineMiddleware({
    name,
    madeWith,
    looksBack: 0,
    tools: [readTool(found, maxBytes)],
    transformSystemPrompt: (prompt) => (prompt === '' ? list : `${prompt}\n\n${list}`),
    ...reports,
  });
}

/** Reports skills that are left out: before anything runs, and in the result of every run. */
function reporting(problems: readonly string[]): Pick<Middleware, 'hazards' | 'beforeRun'> {
  return {
    hazards: () =>
      problems.map((message) => ({
        id: 'skill-left-out',
        message,
        fix: 'The other skills are used. Repair this one and make the middleware again.',
      })),
    beforeRun(ctx) {
      for (const problem of problems) ctx.note(`left a skill out: ${problem}`);
    },
  };
}

function listOf(all: readonly Skill[]): string {
  const lines = all.map(({ name, description }) => `- ${name}: ${description}`);
  return `## Skills

These are instructions for certain tasks. When a task fits one of them, read it with ${READ} before you begin.

${lines.join('\n')}`;
}

interface ReadArgs {
  readonly name: string;
  readonly file?: string;
}

function readTool(found: ReadonlyMap<string, Skill>, maxBytes: number): Tool<ReadArgs, ReadArgs> {
  return tool({
    name: READ,
    description: 'Reads the instructions of a skill, or another file that they name.',
    input: objectInput<ReadArgs>({
      name: { type: 'text', description: 'The name of the skill.' },
      file: {
        type: 'text',
        description: 'A file of the skill, from its folder on. Default: its instructions.',
        optional: true,
      },
    }),
    idempotent: true,
    async execute({ name, file = MAIN_FILE }): Promise<ToolResult> {
      const skill = found.get(name);
      if (!skill) return failure(unknownSkill(name, [...found.keys()]));
      try {
        const text = await readSkillFile(skill, file, maxBytes);
        return toolResult({ content: file === MAIN_FILE ? bodyOf(text) : text });
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        return failure(`${error.message} Its files: ${(await filesOf(skill)).join(', ')}.`);
      }
    },
  });
}

function unknownSkill(name: string, names: readonly string[]): string {
  return `There is no skill ${JSON.stringify(name)}.${didYouMean(name, names)} Skills: ${names.join(', ')}.`;
}
