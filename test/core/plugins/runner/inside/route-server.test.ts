/** The web server inside a runner: what it tells of a route that failed. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { answerOf, routeServer } from '../../../../../core/plugins/runner/inside/route-server.ts';
import { collectLog } from '../../../../support/platform/collected-log.ts';

describe('the routes inside a runner', () => {
  it('name file and line of an error, below the folder of the plugin', async () => {
    const { log, entries } = collectLog();
    const handler = (): never => {
      const error = new Error('no bed');
      error.stack = [
        'Error: no bed',
        '    at dig (file:///state/plugins/node_modules/spade/index.js:9:9)',
        '    at async plant (file:///state/plugins/garden-1/index.js:3:7)',
        '    at node:internal/x:1:1',
      ].join('\n');
      throw error;
    };
    const server = await routeServer([{ method: 'GET', path: '/', handler }], log, '/state/plugins/garden-1');
    const request = { method: 'GET', url: '/', headers: {}, body: '', remoteAddress: '127.0.0.1' };
    assert.equal((await answerOf(server, request)).status, 500);
    assert.equal(entries[0]?.['reason'], 'no bed (at index.js:3:7)');
    await server.stop();
  });
});
