/** A conversation with an agent: one run after the other in one session, and their results. */
import type { RunResult, RunStream, Session } from 'allium';
import { planText } from '../commands/explain.js';
import { endingOf } from '../ending.js';
import { describeError, EXIT, exitCodeOf } from '../outcome.js';
import type { Opened, Shell } from '../shell.js';
import { count, dollars } from '../terminal/text.js';
import { summary } from '../view/live.js';
import { type Asker, follow, type View, withoutSecrets } from '../view/view.js';

export const CHAT_HELP = `/explain   the plan: who runs where
/cost      turns, tokens and cost so far
/resume    go on with a run that is suspended or broke off
/help      this
/exit      leave; so does Ctrl-D, and Ctrl-C when nothing is going on

While the agent works, what you type is said to it before its next turn. Ctrl-C ends the turn.`;

/** For `take`: no new message. */
export const RESUME: unique symbol = Symbol('resume');

export interface Conversation {
  readonly session: Session;
  /** Sends a message, or continues what was suspended. Never throws. */
  take(input: string | typeof RESUME, view: View, ask: Asker): Promise<void>;
  /** Sends a message into the run under way. */
  steer(text: string): Promise<void>;
  /** Ends the turn under way. */
  abort(): void;
  /** The output lines of a slash command; undefined if there is no such command. */
  command(name: string): string[] | undefined;
}

export function converse(
  shell: Shell,
  opened: Opened,
  sessionId: string,
  say: (line: string) => void,
  /** Where errors go. */
  complain = say,
): Conversation {
  const { io } = shell;
  const session = opened.agent.session(sessionId);
  const total = { runs: 0, turns: 0, tokens: 0, costUsd: 0 as number | undefined };
  let turn: AbortController | undefined;
  /** Of the run under way, which has no result yet. */
  let sofar = { turns: 0, tokens: 0 };

  const addUp = ({ turns, usage, costUsd }: RunResult): void => {
    total.runs++;
    total.turns += turns;
    total.tokens += usage.totalTokens;
    total.costUsd =
      total.costUsd === undefined || costUsd === undefined ? undefined : total.costUsd + costUsd;
  };

  return {
    session,
    async take(input, view, ask) {
      turn = new AbortController();
      const { signal } = turn;
      const started = performance.now();
      const start = (onRequest: Asker): RunStream =>
        input === RESUME
          ? session.resumeStream({ signal, onRequest })
          : session.stream(input, { signal, onRequest });
      const counting: View = {
        ...view,
        event(event, at, asked) {
          if (event.type === 'message_end' && event.message?.role === 'assistant') {
            const spent = event.message.usage?.totalTokens ?? 0;
            sofar = { turns: sofar.turns + 1, tokens: sofar.tokens + spent };
          }
          view.event(event, at, asked);
        },
      };
      const { result, error } = await follow(start, counting, { ask });
      turn = undefined;
      sofar = { turns: 0, tokens: 0 };
      // The run is not over, it continues elsewhere: there is nothing to say about its end.
      if (endingOf(io.signal)) return;
      if (result) {
        addUp(result);
        shell.exitCode = result.status === 'aborted' ? EXIT.done : exitCodeOf(result.status);
        const shown = withoutSecrets(result, shell.redact, shell.redactError);
        for (const line of summary(io, shown, performance.now() - started)) say(line);
        if (result.queued.length > 0) say('Your last message came too late. The agent reads it next time.');
        if (result.status === 'suspended')
          say('The run waits for an answer. /resume asks again; any other message gives it up.');
      } else shell.exitCode = EXIT.failed;
      if (error !== undefined && result?.status !== 'aborted')
        complain(io.err.red(`error: ${shell.redactError(describeError(error))}`));
    },
    steer: (text) => session.steer(text),
    abort: () => turn?.abort(),
    command(name) {
      if (name === '/help') return CHAT_HELP.split('\n');
      if (name === '/explain') return planText(opened).split('\n');
      if (name !== '/cost') return undefined;
      const { runs, turns, tokens, costUsd } = total;
      return [
        `${count(runs, 'run')} · ${count(turns, 'turn')} · ${count(tokens, 'token')} · ${dollars(costUsd)}`,
        ...(sofar.turns > 0
          ? [`under way: ${count(sofar.turns, 'turn')} · ${count(sofar.tokens, 'token')}`]
          : []),
      ];
    },
  };
}
