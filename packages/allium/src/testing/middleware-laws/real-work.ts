/** Work that no clock of the kit knows of: files, sockets, timers of the system, other threads. */

/** Milliseconds without a sign of life after which none is expected. */
const PATIENCE_MS = 20;
/** The same while the process has more open than it had before the run: a file, a socket, a timer. */
const PATIENCE_WHILE_BUSY_MS = 250;

export interface RealWork {
  /** Whether something is open that was not there before. Threads are not seen: a digest is under way in silence. */
  readonly busy: boolean;
  /** Lets real time pass until what `signs` returns changes. False when it does not. */
  stirs(signs: () => string): Promise<boolean>;
}

export function realWork(): RealWork {
  const before = openResources().length;
  return {
    get busy() {
      return openResources().length > before;
    },
    async stirs(signs) {
      const first = signs();
      let open = openResources();
      for (let since = performance.now(); ; ) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        if (signs() !== first) return true;
        const now = openResources();
        // One file after the other: each gets its time.
        if (now.join() !== open.join()) since = performance.now();
        open = now;
        const patience = open.length > before ? PATIENCE_WHILE_BUSY_MS : PATIENCE_MS;
        if (performance.now() - since > patience) return false;
      }
    },
  };
}

/** What keeps the process alive, but for the turns of the event loop that the kit itself asks for. */
function openResources(): readonly string[] {
  return (process.getActiveResourcesInfo?.() ?? []).filter((type) => type !== 'Immediate');
}
