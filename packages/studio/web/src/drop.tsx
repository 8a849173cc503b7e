/** Opens an exported trace that is dropped anywhere onto the page. */
import { useEffect, useState } from 'preact/hooks';
import { api } from './api.js';
import { go, say } from './state.js';

export function Drop() {
  const [over, setOver] = useState(false);
  useEffect(() => {
    let depth = 0;
    const has = (event: DragEvent) => event.dataTransfer?.types.includes('Files') === true;
    const enter = (event: DragEvent) => {
      if (!has(event)) return;
      depth++;
      setOver(true);
      event.preventDefault();
    };
    const leave = () => {
      depth = Math.max(0, depth - 1);
      if (depth === 0) setOver(false);
    };
    const hold = (event: DragEvent) => has(event) && event.preventDefault();
    const drop = (event: DragEvent) => {
      depth = 0;
      setOver(false);
      const [file] = event.dataTransfer?.files ?? [];
      if (!file) return;
      event.preventDefault();
      void openFile(file);
    };
    addEventListener('dragenter', enter);
    addEventListener('dragleave', leave);
    addEventListener('dragover', hold);
    addEventListener('drop', drop);
    return () => {
      removeEventListener('dragenter', enter);
      removeEventListener('dragleave', leave);
      removeEventListener('dragover', hold);
      removeEventListener('drop', drop);
    };
  }, []);
  return over ? <div class="drop">Drop a trace to open it</div> : null;
}

export async function openFile(file: File): Promise<void> {
  try {
    const { sessionId, runId } = await api.open(await file.text());
    say(`Opened ${file.name}. It is kept until Studio ends.`);
    go('run', { session: sessionId, run: runId });
  } catch (error) {
    say(`${file.name} could not be opened: ${(error as Error).message}`);
  }
}
