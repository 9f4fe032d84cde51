/**
 * Loaded before a test file by `npm test`: waits for the file's turn, which is over when this process ends.
 * See test/runner/load-slots.ts. From then on the process says what it waits for when it takes too long.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { nameOf } from './test-files.ts';
import { UNIT_FILES } from './unit-files.ts';

/** On a slow machine: a third of the unit tests takes up to 8 min, over 15 with much else on it; others 4 min. */
const LIMIT_MIN = { unit: 25, endToEnd: 8 };

const path = process.env['MOUNTKEEPER_TEST_SLOTS'];
const file = process.argv[1] ?? '';
// What the test starts has nothing to ask for.
delete process.env['NODE_OPTIONS'];
delete process.env['MOUNTKEEPER_TEST_SLOTS'];

if (path !== undefined && /\/test\/(e2e\/.+\.test|unit\/.+)\.js$/.test(file)) {
  const socket = connect(path);
  socket.on('error', () => undefined);
  socket.write(`${nameOf(file)}\n`);
  await once(socket, 'data');
  socket.unref();
  const name = nameOf(file);
  if (name in UNIT_FILES) await import('./lighter-hooks.ts');
  const { sayWhatIsStillRunning } = await import('./still-running.ts');
  sayWhatIsStillRunning({
    name,
    limitMs: (name in UNIT_FILES ? LIMIT_MIN.unit : LIMIT_MIN.endToEnd) * 60_000,
    idleMs: 20_000,
    idleLimitMs: 180_000,
    say: (line) => void process.stderr.write(`${line}\n`),
  });
}
