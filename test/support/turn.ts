/**
 * Loaded before a test file by `npm test`: waits for the file's turn, which is over when this process ends.
 * See test/turns.ts.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { basename } from 'node:path';

const path = process.env['MOUNTKEEPER_TEST_TURNS'];
const file = process.argv[1] ?? '';
// What the test starts has nothing to ask for.
delete process.env['NODE_OPTIONS'];
delete process.env['MOUNTKEEPER_TEST_TURNS'];

if (path !== undefined && /\/test\/(e2e\/[^/]+\.test|unit)\.js$/.test(file)) {
  const socket = connect(path);
  socket.on('error', () => undefined);
  socket.write(`${basename(file).replace(/(\.test)?\.js$/, '')}\n`);
  await once(socket, 'data');
  socket.unref();
}
