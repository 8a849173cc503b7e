// The walk of one message through the agent and the kernel: which files it passes, and how often the file changes on the way.
//   node scripts/walk.mjs          prints each file when it is first entered, and by which function
//   node scripts/walk.mjs --all    prints every function that is entered, in order
//   node scripts/walk.mjs --write  writes the walk into ARCHITECTURE.md; a test notices when it is stale there
//
// One user message, one tool call, one layer around model calls and one guard, from `agent.run()` up to the second
// model call. The compiled modules are copied with a note at the start of every function. Accessors are left out: to a
// reader they are fields.

import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseSync, Visitor } from 'oxc-parser';
import { build } from './build.mjs';
import { alliumFolder, root } from './repository.mjs';

/** @typedef {{ readonly file: string, readonly name: string }} Step A function is entered. */

/** @returns {Promise<Step[]>} */
export async function walk() {
  await build();
  const folder = mkdtempSync(join(tmpdir(), 'allium-walk-'));
  try {
    cpSync(join(alliumFolder, 'build'), folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    for (const [from, prefix] of Object.entries({ kernel: '', agent: 'agent/' }))
      for (const path of /** @type {string[]} */ (readdirSync(join(folder, from), { recursive: true })))
        if (path.endsWith('.js'))
          instrument(join(folder, from, path), prefix + path.replaceAll('\\', '/').slice(0, -3));
    return await oneMessage(await import(pathToFileURL(join(folder, 'index.js')).href));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** How many files a walk passes, and how often it goes from one to another. */
export function measure(/** @type {readonly Step[]} */ steps) {
  const files = new Set(steps.map(({ file }) => file));
  const changes = steps.filter(({ file }, i) => i > 0 && file !== steps[i - 1]?.file).length;
  return { files: files.size, changes };
}

/** Has every function in a module say that it was entered. */
function instrument(/** @type {string} */ path, /** @type {string} */ file) {
  const code = readFileSync(path, 'utf8');
  const { program } = parseSync(path, code);
  /** @type {{ readonly at: number, readonly text: string }[]} */
  const notes = [];
  const accessors = new Set();
  const names = new Map();
  const enter = (/** @type {any} */ node) => {
    if (accessors.has(node) || !node.body) return;
    const note = `globalThis.__walk?.(${JSON.stringify(file)}, ${JSON.stringify(names.get(node) ?? node.id?.name ?? '=>')})`;
    if (node.body.type === 'BlockStatement') notes.push({ at: node.body.start + 1, text: `${note};` });
    else notes.push({ at: node.body.start, text: `(${note}, ` }, { at: node.body.end, text: ')' });
  };
  new Visitor({
    MethodDefinition: (node) => {
      if (node.kind === 'get' || node.kind === 'set') accessors.add(node.value);
      names.set(node.value, code.slice(node.key.start, node.key.end));
    },
    Property: (node) => {
      if (node.kind !== 'init') accessors.add(node.value);
    },
    FunctionDeclaration: enter,
    FunctionExpression: enter,
    ArrowFunctionExpression: enter,
  }).visit(program);
  let made = code;
  for (const { at, text } of notes.sort((a, b) => b.at - a.at))
    made = made.slice(0, at) + text + made.slice(at);
  writeFileSync(path, made);
}

/** @returns {Promise<Step[]>} */
async function oneMessage(/** @type {any} */ { Agent, defineMiddleware, tool }) {
  let calls = 0;
  const model = {
    provider: 'walk',
    id: 'model',
    async *stream() {
      if (++calls === 2) delete walked.__walk;
      if (calls === 1) yield { type: 'tool-call', id: 'call', name: 'weather', arguments: '{"city":"Bonn"}' };
      else yield { type: 'text', text: 'It rains.' };
      yield { type: 'finish', reason: calls === 1 ? 'tool-calls' : 'stop' };
    },
  };
  const weather = tool({
    name: 'weather',
    description: 'The weather in a city.',
    input: {
      '~standard': { version: 1, vendor: 'walk', validate: (/** @type {any} */ value) => ({ value }) },
    },
    toJsonSchema: () => ({ type: 'object' }),
    execute: async () => 'rain',
  });
  const layer = defineMiddleware({
    name: 'layer',
    wrapModel: async (/** @type {any} */ _, /** @type {any} */ next) => next(),
  });
  const guard = defineMiddleware({ name: 'guard', guard: { on: ['output'], find: () => [] } });
  const agent = new Agent({ model, tools: [weather], middleware: [layer, guard] });
  /** @type {Step[]} */
  const steps = [];
  walked.__walk = (/** @type {string} */ file, /** @type {string} */ name) => steps.push({ file, name });
  const { text } = await agent.run('Does it rain in Bonn?');
  if (text !== 'It rains.') throw new Error(`The agent answered "${text}".`);
  return steps;
}

/** Where the modules look for somebody to tell. */
const walked = /** @type {any} */ (globalThis);

/** Rooms whose files a reader knows by their names: types, constructors and helpers. */
const vocabulary = /^(protocol|messages|lib)\//;

/** The steps that tell a story, without those of the rooms above. */
function storyOf(/** @type {readonly Step[]} */ steps) {
  return steps.filter(({ file }) => !vocabulary.test(file));
}

/** The walk as ARCHITECTURE.md shows it: each file when it is first entered, by room. */
export function walkText(/** @type {readonly Step[]} */ steps) {
  const story = storyOf(steps);
  /** @type {{ room: string, names: string[] }[]} */
  const lines = [];
  for (const file of new Set(story.map(({ file }) => file))) {
    const [room = '', name = ''] = file.split('/');
    const last = lines.at(-1);
    if (last?.room === room) last.names.push(name);
    else lines.push({ room, names: [name] });
  }
  const text = lines.map(({ room, names }) => `${room.padEnd(9)}${names.join(' → ')}`).join('\n');
  const { files, changes } = measure(story);
  return `\`\`\`text\n${text}\n\`\`\`\n\nThese are ${files} files; the walk goes from one to another ${changes} times.`;
}

function print(/** @type {readonly Step[]} */ steps) {
  const story = storyOf(steps);
  const seen = new Set();
  for (const { file, name } of process.argv.includes('--all') ? steps : story) {
    if (process.argv.includes('--all')) console.log(`${file} ${name}`);
    else if (!seen.has(file)) console.log(`${String(seen.add(file).size).padStart(2)}  ${file}  ${name}`);
  }
  const told = ({ files, changes } = measure(steps)) => `${files} files, ${changes} changes of file`;
  console.log(`\n${told(measure(story))}; with protocol, messages and lib: ${told()}`);
}

function write(/** @type {readonly Step[]} */ steps) {
  const path = join(root, 'ARCHITECTURE.md');
  const shown = /```text\nagent [^`]*```\n\nThese are .* times\./;
  writeFileSync(
    path,
    readFileSync(path, 'utf8').replace(shown, () => walkText(steps)),
  );
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const steps = await walk();
  if (process.argv.includes('--write')) write(steps);
  else print(steps);
}
