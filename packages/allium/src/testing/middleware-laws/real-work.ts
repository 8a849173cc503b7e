/** Work that no clock of the kit knows of: files, sockets, timers of the system, other threads. */

/**
 * Looks, one each millisecond, without a sign of life after which none is expected. They are counted, and not the time:
 * on a busy machine the process itself is kept waiting.
 */
const PATIENCE = 20;
/** The same of somebody who is known to have work done that cannot be seen. */
const PATIENCE_WITH_SILENCE = 60;
/** The same while the process has more open than it had before the run: a file, a socket, a timer. */
const PATIENCE_WHILE_BUSY = 250;

/** How often somebody who waits for a timer of the kit is asked whether there is something else. */
const TRIES = 3;

/** What is known of how the middleware under test works. */
export interface Habits {
  /** Times it had nothing open, and waited for a timer of the kit indeed. */
  tries: number;
  /** It has had work done that cannot be seen: a digest in another thread keeps nothing open. */
  silent: boolean;
}

export interface RealWork {
  /** Lets real time pass until what `signs` returns changes. False when it does not, or is not expected to. */
  stirs(signs: () => string, timerIsSet: boolean): Promise<boolean>;
}

export function realWork(habits: Habits): RealWork {
  const before = new Map<string, number>();
  for (const type of openResources()) before.set(type, (before.get(type) ?? 0) + 1);

  /** What is open beyond what was there before. */
  function added(): string {
    const now = openResources();
    const more: string[] = [];
    for (const type of new Set([...before.keys(), ...now])) {
      const count = now.filter((one) => one === type).length;
      const was = before.get(type) ?? 0;
      // What was about to go when the bench was made says nothing about what comes.
      if (count < was) before.set(type, count);
      if (count > was) more.push(`${type} ${count}`);
    }
    return more.join();
  }

  async function changes(signs: () => string): Promise<boolean> {
    const first = signs();
    let open = added();
    for (let looks = 0; looks < patience(open); looks++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      if (signs() !== first) return true;
      const now = added();
      // One file after the other: each gets its time.
      if (now !== open) looks = 0;
      open = now;
    }
    return false;
  }

  function patience(open: string): number {
    if (open !== '') return PATIENCE_WHILE_BUSY;
    return habits.silent ? PATIENCE_WITH_SILENCE : PATIENCE;
  }

  return {
    async stirs(signs, timerIsSet) {
      const unseen = added() === '';
      // The timer is what it waits for, then.
      if (unseen && timerIsSet && !habits.silent && habits.tries >= TRIES) return false;
      const stirred = await changes(signs);
      if (unseen && stirred) habits.silent = true;
      if (unseen && timerIsSet) habits.tries++;
      return stirred;
    },
  };
}

/** What keeps the process alive, but for the turns of the event loop that the kit itself asks for. */
function openResources(): readonly string[] {
  return (process.getActiveResourcesInfo?.() ?? []).filter((type) => type !== 'Immediate');
}
