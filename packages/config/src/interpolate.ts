/** Fills in `${NAME}` and `${NAME:-default}`. A value from the environment is a `Secret` from then on. */
import { Filled } from './filled.js';
import type { KeyPath } from './locate.js';
import { type Secret, secretFrom } from './secret.js';

export interface Problem {
  readonly path: KeyPath;
  readonly message: string;
}

const PLACE = /\$\$\{|\$\{([^}]*)(\}|$)/g;
const NAME = /^([A-Za-z_]\w*)(:plain)?(?::-(.*))?$/s;
/** What could mean a number or a switch, if one is wanted there. */
const SCALAR = /^\s*([-+]?[\d.][\w.+-]*|true|false)\s*$/;

/** Doesn't throw itself: `problem` gets the first variable that is missing, and decides. */
export function interpolate(
  value: unknown,
  env: Readonly<Record<string, string | undefined>>,
  problem: (problem: Problem) => never,
  path: KeyPath = [],
): unknown {
  if (typeof value === 'string') return filled(value, env, (message) => problem({ path, message }));
  if (Array.isArray(value))
    return value.map((item, index) => interpolate(item, env, problem, [...path, index]));
  if (!isTable(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, interpolate(member, env, problem, [...path, key])]),
  );
}

/** The variables that the texts of a file use, each once. */
export function variablesIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return [...new Set(value.flatMap(variablesIn))];
  if (isTable(value)) return variablesIn(Object.values(value));
  if (typeof value !== 'string') return [];
  return [...value.matchAll(PLACE)].flatMap(([, inner]) => NAME.exec(inner ?? '')?.[1] ?? []);
}

function filled(
  text: string,
  env: Readonly<Record<string, string | undefined>>,
  fail: (message: string) => never,
): string | Secret | Filled {
  const values: string[] = [];
  let places = 0;
  const result = text.replace(PLACE, (place, inner: string | undefined, end: string | undefined) => {
    if (inner === undefined) return '${'; // `$${` stands for a plain `${`.
    const [, name, plain, fallback] = NAME.exec(inner) ?? [];
    if (end === '') return fail(`\`\${\` has no \`}\`. A plain \${ is written $\${.`);
    if (name === undefined)
      return fail(
        `Expected \${NAME}, \${NAME:-default} or \${NAME:plain}, got ${place}. A plain \${ is written $\${.`,
      );
    places++;
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (fallback !== undefined && !value) return fallback;
    if (value === undefined)
      return fail(`The environment variable ${name} is not set. Set it, or write \${${name}:-default}.`);
    if (!plain) values.push(value);
    return value;
  });
  if (values.length > 0) return secretFrom(result, values);
  return places > 0 && SCALAR.test(result) ? new Filled(result) : result;
}

/** A plain object, as in files: not a date, a secret or something live. */
export function isTable(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
