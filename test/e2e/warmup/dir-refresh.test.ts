/**
 * Folder listings are read anew: what others put on the NAS shows, an unreadable folder counts as failed,
 * nobody waits for it.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import type { ShareJson } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, timed, until } from '../../support/platform/wait.ts';

interface RefreshJson extends ShareJson {
  readonly dir_refresh_active: boolean;
  readonly last_dir_refresh_ago: string | null;
  readonly last_dir_refresh_dirs_ok: number;
  readonly last_dir_refresh_dirs_failed: number;
}

/** Stands before a WebDAV NAS: some folders may not be listed, the listing of others waits. */
class Gatekeeper {
  readonly port: number;
  forbidden: string | undefined;
  slow: { readonly folder: string; readonly over: Promise<unknown> } | undefined;
  /** Listings that wait now. */
  held = 0;

  private constructor(port: number) {
    this.port = port;
  }

  static async start(scratch: Scratch, targetPort: number): Promise<Gatekeeper> {
    const gate = new Gatekeeper(await freePort());
    const server = createServer((asked, answer) => void gate.pass(asked, answer, targetPort));
    server.listen(gate.port, '127.0.0.1');
    await once(server, 'listening');
    scratch.defer(() => {
      server.closeAllConnections();
      server.close();
    });
    return gate;
  }

  private async pass(asked: IncomingMessage, answer: ServerResponse, targetPort: number): Promise<void> {
    const folder = decodeURIComponent(asked.url ?? '').replaceAll(/^\/|\/$/g, '');
    const isListing = asked.method === 'PROPFIND' && asked.headers.depth === '1';
    if (isListing && folder === this.forbidden) {
      answer.writeHead(403).end('no');
      return;
    }
    if (isListing && folder === this.slow?.folder) {
      this.held += 1;
      await this.slow.over;
      this.held -= 1;
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
  }
}

const rclone = currentRclone();

describe('directory refresh', () => {
  let scratch: Scratch;
  let nas: Nas;
  let gate: Gatekeeper;
  let daemon: Daemon;
  let files: Files;
  const share = async (): Promise<RefreshJson> => (await daemon.share('work')) as RefreshJson;
  const names = (folder: string): Promise<readonly string[]> =>
    files.ask<string[]>({ op: 'list', path: `${daemon.mountPoint('work')}/${folder}` }, 10_000);

  before(async () => {
    scratch = await createScratch('refresh');
    nas = await Nas.create(scratch, {
      protocol: 'webdav',
      files: { 'a/deep/x.bin': 10, 'bad/x.bin': 10, 'z/x.bin': 10 },
    });
    gate = await Gatekeeper.start(scratch, nas.port);
    files = new Files(scratch);
    daemon = await Daemon.create(scratch, {
      rclone,
      connections: [nas.connection('nas', gate.port)],
      shares: [{ name: 'work', connection: 'nas' }],
      sections: { mount: { dir_cache_time: '12h' } },
    });
    await daemon.start();
    await daemon.healthy();
    for (const folder of ['', 'a', 'a/deep', 'bad', 'z']) await names(folder);
  });
  after(() => scratch.close());

  it('shows after one refresh what others have put on the NAS, also below a folder that is new', async () => {
    await nas.put('a/deep/new.bin', 10);
    await nas.put('z/fresh/new.bin', 10);
    assert.deepEqual(
      (await names('a/deep')).includes('new.bin'),
      false,
      'seen without a refresh: the test shows nothing',
    );
    const { body } = await daemon.request<{ ok: boolean; dirs_ok: number; dirs_failed: number }>(
      'POST',
      '/api/refresh/work',
    );
    assert.deepEqual([body.ok, body.dirs_ok, body.dirs_failed], [true, 6, 0]);
    assert.ok((await names('a/deep')).includes('new.bin'));
    assert.deepEqual(await names('z/fresh'), ['new.bin']);
  });

  it('counts an unreadable folder as failed and the others as ok, at the interval that was set meanwhile', async () => {
    gate.forbidden = 'bad';
    await nas.put('z/later.bin', 10);
    assert.equal((await share()).dir_refresh_active, false);
    const answer = await daemon.submit(daemon.text({ sections: { dir_refresh: { interval: '3s' } } }));
    assert.equal(answer.body.ok, true, answer.text);
    await until(
      'the refresh is told of',
      async () => {
        const {
          last_dir_refresh_dirs_failed: failed,
          last_dir_refresh_dirs_ok: ok,
          last_dir_refresh_ago: ago,
          dir_refresh_active: active,
        } = await share();
        return failed === 1 && ok === 5 && ago !== null && active;
      },
      { timeoutMs: 30_000 },
    );
    assert.ok((await names('z')).includes('later.bin'));
    assert.ok((await names('bad')).includes('x.bin'), 'the folder goes on showing what was known of it');
    assert.match(await daemon.log(), /folder not refreshed.*bad/);
  });

  it('lets neither the figures nor readers wait for a slow folder', async (t) => {
    gate.forbidden = undefined;
    await daemon.submit(
      daemon.text({ shares: [{ name: 'work', connection: 'nas', dir_refresh_interval: '0' }] }),
    );
    await until('it is off', async () => !(await share()).dir_refresh_active, { timeoutMs: 20_000 });
    await until(
      'no refresh is under way',
      async () => (await daemon.cli('refresh', 'work', 'z')).code === 0,
      { timeoutMs: 25_000 },
    );
    let goOn = (): void => undefined;
    gate.slow = {
      folder: 'a/deep',
      over: new Promise<void>((resolve) => {
        goOn = resolve;
      }),
    };
    scratch.defer(() => goOn());
    const slow = daemon
      .request<{ ok: boolean }>('POST', '/api/refresh/work', { path: 'a' })
      .catch(() => undefined);
    await until('the slow folder is being read', () => gate.held > 0, { timeoutMs: 20_000 });
    const spans: Record<'list' | 'status', number[]> = { list: [], status: [] };
    for (const end = performance.now() + 3_000; performance.now() < end; await sleep(200)) {
      spans.list.push(await timed(names('a/deep')));
      spans.status.push(await timed(share()));
      const { health, health_message: message } = await share();
      assert.deepEqual([health, message], ['healthy', null]);
    }
    for (const [what, taken] of Object.entries(spans)) {
      const sorted = taken.map(Math.round).sort((a, b) => a - b);
      t.diagnostic(`${what}: ${sorted.join(', ')} ms`);
      // One may meet a busy machine; a folder that is waited for would hold up each.
      assert.ok(
        (sorted[Math.floor(sorted.length / 2)] ?? Infinity) < 1_000,
        `${what}: ${sorted.join(', ')} ms`,
      );
    }
    const again = await daemon.cli('refresh', 'work');
    assert.deepEqual([again.code, /already/.test(again.stderr)], [1, true], again.stderr);
    // Whoever was answered above did not wait for it: it ends here.
    assert.ok(gate.held > 0);
    goOn();
    gate.slow = undefined;
    await slow;
  });
});
