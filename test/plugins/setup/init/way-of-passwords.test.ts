/** Over which way the guide on the terminal sends passwords, for a user who may not open the daemon's socket. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { text } from 'node:stream/consumers';
import { NOBODY, runCli } from '../../../support/daemon/daemon.ts';
import type { CliResult } from '../../../support/daemon/daemon.ts';
import { letOthersEnter } from '../../../support/platform/folder-access.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';
import { unlessRoot } from '../../../runner/skips.ts';

const PASSWORD = 'geheim-4711';

describe('the passwords of mountkeeper init', { skip: unlessRoot }, () => {
  let scratch: Scratch;
  let url: string;
  /** What came to whoever listens at the usual address. */
  const heard: string[] = [];

  before(async () => {
    scratch = await createScratch('init-way');
    await letOthersEnter(scratch.root);
    const server = createServer((incoming, response) => {
      void text(incoming).then((body) => {
        heard.push(`${incoming.method ?? ''} ${incoming.url ?? ''} ${body}`);
        response.end('{"shares":[],"ok":false,"message":"no","folders":[]}');
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    scratch.defer(() => server.close());
    const { port } = server.address() as AddressInfo;
    url = `http://127.0.0.1:${port}`;
    await mkdir(scratch.path('state'), { mode: 0o700 });
    await writeFile(scratch.path('password'), `${PASSWORD}\n`, { mode: 0o644 });
    await writeFile(
      scratch.path('mountkeeper.toml'),
      `[web]\nport = ${port}\n[supervisor]\nstate_dir = "${scratch.path('state')}"\n`,
      { mode: 0o644 },
    );
  });
  after(() => scratch.close());

  const init = (...more: string[]): Promise<CliResult> => {
    const account = ['--user', 'ada', '--password-file', scratch.path('password')];
    const words = ['--config', scratch.path('mountkeeper.toml'), '--address', 'sftp://nas.example', '--yes'];
    return runCli(['init', ...words, ...account, ...more], 60_000, {}, NOBODY);
  };

  it('go to no address that nobody has named, where any local user may listen', async () => {
    const { code, stderr } = await init();
    assert.equal(code, 1);
    assert.match(stderr, /may not open the socket of the daemon; run this as root .* or name .* --url/);
    assert.deepEqual(heard, ['GET /healthz ']);
  });

  it('go to the address that was named', async () => {
    heard.length = 0;
    const { code, stderr } = await init('--url', url);
    assert.deepEqual([code, stderr.includes('the NAS refuses: no')], [1, true]);
    assert.match(heard.join('\n'), /POST \/api\/setup\/folders .*geheim-4711/);
  });
});
