/** What a NAS does not give out is counted and logged, and its reason stays in the log. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { inState } from '../../support/warmup/warmup-status.ts';

/** Stands before a WebDAV NAS: one folder may not be listed, one file may not be read. */
async function gatekeeper(scratch: Scratch, targetPort: number): Promise<number> {
  const server = createServer((asked, answer) => {
    const path = decodeURIComponent(asked.url ?? '');
    const isForbidden =
      (asked.method === 'PROPFIND' && path.endsWith('/bad/')) ||
      (asked.method === 'GET' && path.endsWith('/no.bin'));
    if (isForbidden) {
      answer.writeHead(403).end('secret words of the NAS');
      return;
    }
    const passed = request(
      { host: '127.0.0.1', port: targetPort, method: asked.method, path: asked.url, headers: asked.headers },
      (given) => {
        answer.writeHead(given.statusCode ?? 502, given.headers);
        given.pipe(answer);
      },
    );
    passed.on('error', () => answer.destroy());
    asked.pipe(passed);
  });
  const port = await freePort();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  scratch.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  return port;
}

describe('a warmup of what may not be read', () => {
  it('counts each folder and file once, fetches the others, and tells the reason to the log alone', async (t) => {
    const scratch = await createScratch('warmup-unreadable');
    t.after(() => scratch.close());
    const nas = await Nas.create(scratch, {
      protocol: 'webdav',
      files: { 'all/bad/x.bin': 10, 'all/no.bin': 20_000, 'all/a.bin': 20_000, 'all/deep/b.bin': 20_000 },
    });
    const port = await gatekeeper(scratch, nas.port);
    const daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas', port)],
      shares: [{ name: 'work', connection: 'nas' }],
      sections: {
        warmup: {
          rules: [
            { share: 'work', path: 'all' },
            { share: 'work', path: 'nowhere' },
          ],
        },
      },
    });
    await daemon.start();
    const { total_files: total, cached, errors } = await inState(daemon, 'all', 'complete', 30_000);
    assert.deepEqual([total, cached, errors], [3, 2, 2]);
    await inState(daemon, 'nowhere', 'failed', 30_000);
    const log = await daemon.log();
    for (const line of [/not warmed up.*all\/bad/, /not warmed up.*all\/no\.bin/, /warmup failed.*nowhere/])
      assert.match(log, line);
    const answers =
      (await daemon.get('/api/status')).text +
      (await daemon.get('/api/warmup/work')).text +
      (await daemon.get('/api/notices')).text;
    assert.doesNotMatch(answers, /\b403\b|Forbidden|secret words|not there on the remote|EIO/i);
    const { code, stdout } = await daemon.cli('warmup', 'work', 'all');
    assert.deepEqual([code, /2 could not be read; the log names them/.test(stdout)], [1, true], stdout);
  });
});
