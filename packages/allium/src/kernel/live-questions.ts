/** Questions that a handler in this process is asked, each once. */
import { checkAnswer } from './answers.js';
import { attribute } from './errors.js';
import type { Run } from './run.js';
import type { Decision, PendingRequest, Request } from './store.js';

type Handler = NonNullable<Request['onRequest']>;

export interface Question {
  readonly answer: Promise<Decision | undefined>;
  /** The answer as it was taken in, once somebody did. */
  taken: Promise<Decision> | undefined;
  /** How many attempts wait for it. */
  waiting: number;
}

/** Nobody answered in time. */
export const LAPSED: Decision = Object.freeze({ type: 'reject' });

export class LiveQuestions {
  private readonly asked = new Map<string, Question>();

  constructor(private readonly run: Run) {}

  /**
   * Attempts that overlap, or follow one that was given up, ask as one. The handler is asked once `write` has journaled
   * the question. What came to nothing can be asked again.
   */
  ask(request: PendingRequest, given: Request, handler: Handler, write: () => Promise<void>): Question {
    let question = this.asked.get(request.id);
    if (question === undefined) {
      const by = given.onRequest ? request.by : undefined;
      const answer = write().then(() => this.inTime(request, this.answered(request, handler, by)));
      question = { answer, taken: undefined, waiting: 0 };
      this.asked.set(request.id, question);
      const over = (): void => this.forget(request);
      answer.then((decision) => decision ?? over(), over);
    }
    return question;
  }

  forget({ id }: PendingRequest): void {
    this.asked.delete(id);
  }

  private async answered(
    request: PendingRequest,
    handler: Handler,
    by: string | undefined,
  ): Promise<Decision | undefined> {
    try {
      const decision = await handler(request);
      return decision === undefined ? undefined : checkAnswer(request, decision, request.createdAt);
    } catch (error) {
      attribute(error, { hook: 'onRequest', ...(by && { middleware: by }) }, this.run);
      throw error;
    }
  }

  private inTime(
    { timeoutMs, createdAt }: PendingRequest,
    answering: Promise<Decision | undefined>,
  ): Promise<Decision | undefined> {
    if (timeoutMs === undefined) return answering;
    const { clock } = this.run;
    let cancel = (): void => {};
    const late = new Promise<Decision>((resolve) => {
      cancel = clock.setTimer(() => resolve(LAPSED), createdAt + timeoutMs - clock.now());
    });
    return Promise.race([answering, late]).finally(() => cancel());
  }
}
