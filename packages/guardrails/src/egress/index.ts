/** Lets links and addresses point only to hosts that are allowed, so that nothing leaves through them. */
import type { Middleware } from 'allium';
import { checkFields, invalidOption, kinds, type OptionsOf } from 'allium/kit';
import { SEARCH_FIELDS, searchGuard } from '../scan/guard.js';
import { findHosts } from './hosts.js';

export const OPTIONS = {
  ...SEARCH_FIELDS,
  /** Hosts that may be named: `example.org`, or `*.example.org` for all below it. @default none */
  allowHosts: kinds.names,
  /** Replaces an address that was cut. @default '[link removed]' */
  replacement: kinds.text,
};

export type EgressOptions = OptionsOf<typeof OPTIONS>;

/**
 * Cuts addresses of other hosts out of answers and out of arguments of tools: plain, in Markdown and HTML, with or
 * without a scheme, however the host is spelled.
 *
 * @example
 * new Agent({ model, middleware: [egress({ allowHosts: ['example.org', '*.example.org'] })] });
 */
export function egress(options: EgressOptions = {}): Middleware {
  checkFields('egress()', OPTIONS, options);
  const { allowHosts = [], replacement = '[link removed]' } = options;
  const allowed = allowHosts.map((host, i) => hostRule(`allowHosts[${i}]`, host));
  return searchGuard(options, {
    kind: 'egress',
    points: ['output', 'tool-args'],
    hold: options.window ?? 256,
    severity: 'high',
    detect: (text, from, { point }) =>
      findHosts(text, from, point === 'tool-args')
        .filter(({ host }) => !allowed.some((fits) => fits(host)))
        .map(({ start, end, kind }) => ({ start, end, kind })),
    replace: () => replacement,
    guard: { originals: true },
  });
}

/** Compares with the host as browsers understand it. */
function hostRule(option: string, rule: string): (host: string) => boolean {
  const below = rule.startsWith('*.');
  let host: string;
  try {
    host = new URL(`http://${below ? rule.slice(2) : rule}/`).hostname;
  } catch {
    throw invalidOption(option, 'a host such as example.org or *.example.org', rule);
  }
  return below ? (given) => given.endsWith(`.${host}`) : (given) => given === host;
}
