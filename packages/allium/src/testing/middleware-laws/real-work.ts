/** Work that the kit's clock knows nothing of: files, sockets, timers of the system, other threads. */

/**
 * The kit looks for a sign of life once per millisecond and gives up after this many looks without one. It counts looks,
 * not time, because on a busy machine the process itself has to wait.
 */
const PATIENCE = 20;
/** The same for a middleware that is known to do work nobody can see. */
const PATIENCE_WITH_SILENCE = 60;
/** The same while the process has more open than before the run: a file, a socket, a timer. */
const PATIENCE_WHILE_BUSY = 250;

/** After this many waits for a timer of the kit, and for nothing else, the kit stops looking for real work. */
const TRIES = 3;

/** What is known so far of how the middleware under test works. */
export interface Habits {
  /** How many times it had nothing open and waited for a timer of the kit. */
  tries: number;
  /** It once did work that nobody can see: a digest in another thread, for example, keeps nothing open. */
  silent: boolean;
}

export interface RealWork {
  /** Lets real time pass until the result of `signs` changes. False if it does not change, or is not expected to. */
  stirs(signs: () => string, timerIsSet: boolean): Promise<boolean>;
}

export function realWork(habits: Habits): RealWork {
  const before = new Map<string, number>();
  for (const type of openResources()) before.set(type, (before.get(type) ?? 0) + 1);

  /** What is open now and was not before. */
  function added(): string {
    const now = openResources();
    const more: string[] = [];
    for (const type of new Set([...before.keys(), ...now])) {
      const count = now.filter((one) => one === type).length;
      const was = before.get(type) ?? 0;
      // It was about to be closed when the bench was made, so it doesn't count any more.
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
      // Something else is open now, such as the next file: begin to count again.
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
      // Then it is waiting for the timer.
      if (unseen && timerIsSet && !habits.silent && habits.tries >= TRIES) return false;
      const stirred = await changes(signs);
      if (unseen && stirred) habits.silent = true;
      if (unseen && timerIsSet) habits.tries++;
      return stirred;
    },
  };
}

/** What keeps the process alive, except the turns of the event loop that the kit itself asks for. */
function openResources(): readonly string[] {
  return (process.getActiveResourcesInfo?.() ?? []).filter((type) => type !== 'Immediate');
}
