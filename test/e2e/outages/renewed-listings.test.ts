// @load quiet
// @start 4
/**
 * Listings are renewed while the NAS is there: what it lists as before is not dropped, so that nothing is lost when it
 * goes away in that very moment; what others changed shows within `dir_cache_time`, wherever it is.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { treesOf } from '../../../plugins/mount/cache/metadata.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';

const TRUSTED_MS = 10_000;
/** Listings of one folder that are further apart are of two renewals. */
const ONE_RENEWAL_MS = 2_000;
/** In it is a cached file, and a folder in which nothing is. */
const FILMS = 'work/films';

/** Stands before a WebDAV NAS, and ends its service right after it has listed a certain folder. */
class Doorman {
  readonly port: number;
  /** Called when the folder has been listed: from then on nothing is answered. */
  lastFolder: { readonly path: string; readonly onListed: () => void } | undefined;
  isGone = false;
  readonly #listed = new Map<string, number[]>();

  private constructor(port: number) {
    this.port = port;
  }

  static async start(scratch: Scratch, targetPort: number): Promise<Doorman> {
    const doorman = new Doorman(await freePort());
    const server = createServer((asked, answer) => doorman.#pass(asked, answer, targetPort));
    server.listen(doorman.port, '127.0.0.1');
    await once(server, 'listening');
    scratch.defer(() => {
      server.closeAllConnections();
      server.close();
    });
    return doorman;
  }

  /** Times of the first listing of the folder in each renewal; with how many it was listed in it. */
  renewalsOf(folder: string): readonly { readonly atMs: number; readonly times: number }[] {
    const found: { atMs: number; times: number; lastMs: number }[] = [];
    for (const atMs of this.#listed.get(folder) ?? []) {
      const last = found.at(-1);
      if (!last || atMs - last.lastMs > ONE_RENEWAL_MS) found.push({ atMs, times: 1, lastMs: atMs });
      else Object.assign(last, { times: last.times + 1, lastMs: atMs });
    }
    return found;
  }

  #pass(asked: IncomingMessage, answer: ServerResponse, targetPort: number): void {
    if (this.isGone) {
      asked.socket.destroy();
      return;
    }
    const folder = decodeURIComponent(asked.url ?? '').replaceAll(/^\/|\/$/g, '');
    const isListing = asked.method === 'PROPFIND' && asked.headers.depth === '1';
    if (isListing) this.#listed.set(folder, [...(this.#listed.get(folder) ?? []), performance.now()]);
    const { method, url: path, headers } = asked;
    const onward = request({ host: '127.0.0.1', port: targetPort, method, path, headers }, (told) => {
      answer.writeHead(told.statusCode ?? 502, told.headers);
      told.pipe(answer);
    });
    onward.on('error', () => answer.destroy());
    asked.pipe(onward);
    const last = this.lastFolder;
    if (!isListing || folder !== last?.path) return;
    this.lastFolder = undefined;
    answer.on('finish', () => {
      this.isGone = true;
      last.onListed();
    });
  }
}

describe('listings that are trusted for 10 s', () => {
  let scratch: Scratch;
  let nas: Nas;
  let doorman: Doorman;
  let relay: Relay;
  let daemon: Daemon;
  const path = (name: string): string => join(daemon.mountPoint('work'), name);
  const message = async (): Promise<string> => (await daemon.share('work')).health_message ?? '';
  /** So many renewals from now on; the last one is over. */
  const renewed = async (count: number): Promise<void> => {
    const before = doorman.renewalsOf(FILMS).length;
    await until('listings are renewed', async () => doorman.renewalsOf(FILMS).length >= before + count, {
      timeoutMs: 60_000,
    });
    await sleep(ONE_RENEWAL_MS);
  };
  /** What others have just done shows in a listing that is begun once the former one is trusted no longer. */
  const isSeen = async (
    t: TestContext,
    { folder, name, isThere }: { readonly folder: string; readonly name: string; readonly isThere: boolean },
  ): Promise<void> => {
    const start = performance.now();
    for (;;) {
      const begunMs = performance.now() - start;
      if ((await readdir(path(join('films', folder)))).includes(name) === isThere) break;
      assert.ok(
        begunMs < TRUSTED_MS + 2_000,
        `${name} is as it was in a listing that was begun after ${Math.round(begunMs)} ms`,
      );
      await sleep(200);
    }
    t.diagnostic(`${join(folder, name)} seen after ${Math.round(performance.now() - start)} ms`);
  };
  const goesAfterListing = async (folder: string): Promise<void> => {
    await new Promise<void>((resolve) => (doorman.lastFolder = { path: folder, onListed: resolve }));
    // rclone has got the answer by then, and asks for nothing that it would get.
    await sleep(300);
    await relay.cut();
    await until('it is known', async () => /does not answer/.test(await message()), { timeoutMs: 30_000 });
  };

  before(async () => {
    scratch = await createScratch('renewed-listings');
    nas = await Nas.create(scratch, {
      protocol: 'webdav',
      files: {
        'work/films/old/a.bin': 300_000,
        'work/films/others/deep/b.bin': 5_000,
        'work/c.bin': 10,
      },
    });
    doorman = await Doorman.start(scratch, nas.port);
    relay = await Relay.start(scratch, { targetPort: doorman.port });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas', relay.port)],
      shares: [{ name: 'work', connection: 'nas', remote_path: 'work' }],
      sections: {
        mount: { dir_cache_time: `${TRUSTED_MS / 1000}s` },
        // At the return of a NAS it has all folders listed.
        'plugins.nas-watch': { enabled: false },
      },
    });
    await daemon.start();
    await daemon.healthy();
    assert.equal((await readFile(path('films/old/a.bin'))).length, 300_000);
    const { data } = treesOf(scratch.path('keeper/cache/work'));
    await until('it is cached', async () => (await stat(join(data, FILMS, 'old/a.bin'))).size === 300_000, {
      timeoutMs: 30_000,
    });
  });
  afterEach(async () => {
    doorman.isGone = false;
    await relay.restore();
    await until('the NAS is back', async () => (await message()) === '', { timeoutMs: 60_000 });
  });
  after(() => scratch.close());

  it(
    'stay where nothing has changed, though the NAS leaves in the moment of their renewal',
    { timeout: 180_000 },
    async (t) => {
      // Of a new rclone nobody knows what it holds: it reads all once.
      await renewed(3);
      t.diagnostic(
        `listed so often in each renewal: ${doorman
          .renewalsOf(FILMS)
          .map(({ times }) => times)
          .join(', ')}`,
      );
      await goesAfterListing(FILMS);
      assert.deepEqual((await readdir(path('films'))).sort(), ['old', 'others']);
      assert.deepEqual(await readdir(path('films/old')), ['a.bin']);
      assert.equal((await readFile(path('films/old/a.bin'))).length, 300_000);
    },
  );

  it(
    'show what others change within that time, in a folder in which nothing is cached, too',
    { timeout: 180_000 },
    async (t) => {
      await renewed(2);
      for (const [round, folder] of ['others/deep', 'old', 'others', 'others/deep', 'old'].entries()) {
        // rclone holds them.
        for (const held of ['others', 'others/deep', 'old']) await readdir(path(`films/${held}`));
        const name = `new-${round}`;
        await nas.put(`${FILMS}/${folder}/${name}`, 10);
        await isSeen(t, { folder, name, isThere: true });
      }
    },
  );

  it(
    'show that others have undone what a refresh had read since the last renewal',
    { timeout: 120_000 },
    async (t) => {
      await renewed(2);
      await nas.put(`${FILMS}/short.bin`, 10);
      const { body } = await daemon.request<{ ok: boolean }>('POST', '/api/refresh/work', { path: 'films' });
      assert.equal(body.ok, true);
      assert.ok((await readdir(path('films'))).includes('short.bin'));
      await rm(nas.path(FILMS, 'short.bin'));
      await isSeen(t, { folder: '', name: 'short.bin', isThere: false });
    },
  );
});
