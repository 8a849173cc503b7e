/** A chat on a terminal: a prompt that stays, answers that stream above it, steering, questions and Ctrl-C. */
import type { Interface } from 'node:readline';
import type { Decision, PendingRequest } from 'allium';
import { problemWith } from '../inbox.js';
import type { Opened, Shell } from '../shell.js';
import { makeScreen, openReadline, type Screen } from '../terminal/screen.js';
import { logLine, seconds } from '../terminal/text.js';
import { describeRequest, isSettled, SETTLED_ELSEWHERE } from '../view/ask.js';
import { narrate } from '../view/live.js';
import type { View } from '../view/view.js';
import { howToAnswer, readAnswer } from './answer.js';
import { type Conversation, converse, RESUME } from './conversation.js';
import { readHistory, writeHistory } from './history.js';

const IDLE = '› ';

/** Settles when the person leaves. */
export function chatOnTerminal(shell: Shell, opened: Opened, sessionId: string): Promise<void> {
  const { io } = shell;
  const readline = openReadline(io, IDLE, readHistory(opened.loaded.dir));
  readline.on('history', (lines: string[]) => writeHistory(opened.loaded.dir, lines));
  const screen = makeScreen(io.stdout, readline);
  const conversation = converse(shell, opened, sessionId, (line) => screen.line(shell.redact(line)));
  screen.line(io.out.dim(`Session ${sessionId}. /help lists the commands; Ctrl-D leaves.`));
  const chat = new TerminalChat(shell, conversation, readline, screen);
  // The process is ending, so nobody can type any more.
  io.signal.addEventListener('abort', () => readline.close(), { once: true });
  return chat.untilClosed();
}

class TerminalChat {
  private working: Promise<void> | undefined;
  private readonly decided = new Map<string, Decision>();
  private question: { request: PendingRequest; answer: (decision: Decision | undefined) => void } | undefined;

  constructor(
    private readonly shell: Shell,
    private readonly conversation: Conversation,
    private readonly readline: Interface,
    private readonly screen: Screen,
  ) {}

  untilClosed(): Promise<void> {
    const { readline } = this;
    return new Promise((resolve) => {
      readline.on('line', (line) => this.entered(line));
      readline.on('SIGINT', () => this.interrupted());
      readline.on('close', () => {
        this.screen.close();
        // An open question can be answered another day: the run is suspended. Any other work ends here.
        if (this.question) this.postpone();
        else this.conversation.abort();
        // The run is allowed to end: its journal is closed before the program is.
        (this.working ?? Promise.resolve()).then(resolve, resolve);
      });
    });
  }

  private entered(line: string): void {
    this.screen.entered();
    const text = line.trim();
    if (this.question && !text.startsWith('/'))
      this.answered(line).catch((error) => this.screen.line(this.shell.redactError(`error: ${error}`)));
    else if (text === '') this.readline.prompt();
    else if (text.startsWith('/')) this.command(text);
    else if (this.working) {
      this.screen.line(this.shell.io.out.dim('  ↪ the agent reads that before its next turn'));
      this.conversation
        .steer(text)
        .catch((error) => this.screen.line(this.shell.redactError(`error: ${error}`)));
    } else this.start(text);
  }

  private command(text: string): void {
    if (text === '/exit' || text === '/quit') this.readline.close();
    else if (text === '/resume' && !this.working) this.start(RESUME);
    else {
      const lines = this.conversation.command(text) ?? [`There is no ${text}. /help lists the commands.`];
      this.screen.line(lines.join('\n'));
    }
  }

  private start(input: string | typeof RESUME): void {
    const started = performance.now();
    const { screen, shell } = this;
    const paper = { text: screen.text, line: (text: string) => screen.line(shell.redact(text)) };
    const narrator = narrate(shell.io, paper, () => performance.now(), this.decided);
    const show = (): void => {
      if (!this.question) screen.prompt(shell.io.out.dim(`${seconds(performance.now() - started)} ${IDLE}`));
    };
    const timer = setInterval(show, 500);
    const view: View = {
      event(event, at, asked) {
        narrator(event, at, asked);
        if (event.type === 'message_end' || event.type === 'message_reset') screen.endLine();
      },
      pause() {},
      answer: ({ callId }, decision) => void this.decided.set(callId, decision),
      log: (line) => paper.line(shell.io.out.dim(`  ${logLine(line)}`)),
    };
    this.working = this.conversation
      .take(input, view, (request, { signal }) => this.ask(request, signal))
      .finally(() => {
        clearInterval(timer);
        this.working = undefined;
        this.question = undefined;
        screen.prompt(IDLE);
      });
  }

  private ask(request: PendingRequest, signal: AbortSignal): Promise<Decision | undefined> {
    const { screen, shell } = this;
    return new Promise((resolve) => {
      const question = { request, answer: resolve };
      this.question = question;
      signal.addEventListener('abort', () => {
        if (this.question !== question || !isSettled(signal)) return;
        this.question = undefined;
        screen.line(shell.io.out.yellow(`  ${SETTLED_ELSEWHERE}`));
        screen.prompt(IDLE);
        resolve(undefined);
      });
      for (const line of describeRequest(request)) screen.line(shell.io.out.yellow(line));
      screen.line(shell.io.out.dim(`  ${howToAnswer(request)}`));
      screen.prompt('? ');
    });
  }

  private async answered(line: string): Promise<void> {
    const open = this.question!;
    const { request, answer } = open;
    const { agent } = this.conversation.session;
    const decision = readAnswer(request, line);
    if (typeof decision === 'object' && 'problem' in decision) {
      this.screen.line(`  ${decision.problem}`);
      return;
    }
    // Still open while the tool checks it. If the person leaves meanwhile, it stays open.
    const problem = decision === 'later' ? undefined : await problemWith(agent, request, decision);
    if (this.question !== open) return;
    if (problem !== undefined) {
      this.screen.line(`  ${this.shell.redact(problem)}`);
      return;
    }
    this.question = undefined;
    this.screen.prompt(IDLE);
    answer(decision === 'later' ? undefined : decision);
  }

  /** Ctrl-C: first the line, then the turn, then the chat. */
  private interrupted(): void {
    if (this.working) {
      this.screen.line(this.shell.io.out.yellow('  ✗ aborted'));
      this.conversation.abort();
      this.postpone();
    } else if (this.readline.line !== '') {
      this.screen.entered();
      this.readline.write(null, { ctrl: true, name: 'e' });
      this.readline.write(null, { ctrl: true, name: 'u' });
    } else this.readline.close();
  }

  private postpone(): void {
    const open = this.question;
    this.question = undefined;
    open?.answer(undefined);
  }
}
