/**
 * The events of a run as its caller reads them, with the originals of placeholders in the answer. Observers see the
 * placeholders.
 */

import type { Context } from '../context/context.js';
import { SpanStage } from '../guards/redact-stream.js';
import { answerRestorers, placeholders, restoredText, restoredValue } from '../guards/restore.js';
import type { Message } from '../messages/messages.js';
import type { AgentEvent } from '../protocol/events.js';
import type { PlannedGuard } from '../protocol/middleware.js';
import type { RunResult } from '../protocol/result.js';
import type { EventSink } from './event-queue.js';

type Update = AgentEvent & { readonly type: 'message_update' };

export class RestoringQueue implements EventSink {
  /** The text of each block of the current message. Its end may be the beginning of a placeholder. */
  private readonly blocks = new Map<number, SpanStage>();
  private readonly guards: readonly PlannedGuard[];
  private readonly hold: number;
  /** The attempt that is shown. It may have made placeholders that no cell holds yet. */
  private attempt: Context | undefined;

  constructor(
    private readonly queue: EventSink,
    private readonly run: Context,
  ) {
    this.guards = answerRestorers(run.plan);
    this.hold = Math.max(...this.guards.map(({ guard }) => guard.restore!.answer!.chars));
  }

  /** The next pieces of the answer come from this attempt. */
  shows(attempt: Context): void {
    this.attempt = attempt;
  }

  pushDelta(event: AgentEvent): void {
    if (event.type === 'message_update' && event.delta.type === 'text')
      this.stageOf(event).push(event.delta.text);
    else this.queue.pushDelta(event);
  }

  push(event: AgentEvent): void {
    if (event.type === 'message_reset') this.blocks.clear();
    if (event.type === 'message_end' && event.message?.role === 'assistant') {
      this.attempt = undefined;
      for (const stage of this.blocks.values()) stage.end();
      this.blocks.clear();
      this.queue.push({ ...event, message: this.shown(event.message) });
    } else this.queue.push(event);
  }

  pressure(): Promise<void> | undefined {
    return this.queue.pressure();
  }

  private stageOf(event: Update): SpanStage {
    const { block } = event.delta;
    const known = this.blocks.get(block);
    if (known) return known;
    const stage = new SpanStage({
      hold: this.hold,
      find: (text) => placeholders(this.guards, text, this.to),
      replacement: ({ replacement }) => replacement,
      out: (text) => this.queue.pushDelta({ ...event, delta: { type: 'text', block, text } }),
      outNext: () => {},
    });
    this.blocks.set(block, stage);
    return stage;
  }

  private shown<M extends Message>(message: M): M {
    const content = message.content.map((part) =>
      part.type === 'text' ? { ...part, text: restoredText(this.guards, part.text, this.to) } : part,
    );
    return { ...message, content };
  }

  private get to() {
    return { for: 'answer' as const, context: this.attempt ?? this.run };
  }
}

/** The result as the caller gets it. */
export function restoredResult(result: RunResult, run: Context): Pick<RunResult, 'text' | 'output'> {
  const guards = answerRestorers(run.plan);
  const to = { for: 'answer' as const, context: run };
  return {
    text: restoredText(guards, result.text, to),
    output: result.output === undefined ? undefined : restoredValue(guards, result.output, to),
  };
}
