/** Asks the daemon every 20 ms until it is told to end; then says how long each answer took. */
import { parentPort, workerData } from 'node:worker_threads';
import { Poll } from '../support/http/poll.ts';

export interface Asked {
  readonly tookMs: readonly number[];
  readonly failed: number;
}

const { port, path } = workerData as { readonly port: number; readonly path: string };
const poll = new Poll(async () => {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`);
  await answer.arrayBuffer();
  return answer.status === 200 ? undefined : String(answer.status);
});
parentPort?.once('message', () => {
  void poll.end().then(() => {
    const asked: Asked = { tookMs: poll.tookMs, failed: poll.failures.length };
    parentPort?.postMessage(asked);
  });
});
