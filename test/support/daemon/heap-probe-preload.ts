/**
 * Loaded into the daemon by the tests alone (`node --import`): answers on a unix socket with what the process
 * holds. The product knows nothing of it. Neither its server nor its connections count as something held.
 */
import { createServer } from 'node:net';
import { isMainThread } from 'node:worker_threads';

const path = process.env['MOUNTKEEPER_TEST_PROBE'];
delete process.env['MOUNTKEEPER_TEST_PROBE'];
delete process.env['NODE_OPTIONS'];

function countByKind(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

if (path !== undefined && isMainThread) {
  createServer((socket) => {
    const collect = (globalThis as { gc?: () => void }).gc;
    collect?.();
    // Finalizers run between two collections.
    setImmediate(() => {
      collect?.();
      socket.end(JSON.stringify({ heapUsed: process.memoryUsage().heapUsed, resources: countByKind() }));
    });
  })
    .listen(path)
    .unref();
}
