/** `npm start`, from its first line to the empty folder it leaves. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { after, before, describe, it } from 'node:test';
import { MAY_WRITE } from '../../../config/demo/room.ts';
import { describeServers } from '../../../config/demo/servers.ts';
import { hasBrowser, openBrowser } from '../../support/dashboard/chromium.ts';
import { WatchedPage } from '../../support/dashboard/watched-page.ts';
import { mountsBelow } from '../../support/platform/mounted-file-systems.ts';
import { processesNaming } from '../../support/platform/processes.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { SKIPS } from '../../runner/skips.ts';
import { until, within } from '../../support/platform/wait.ts';

const SERVERS = { ports: { smb: 1, nfs: 2, webdav: 3 }, password: 'x' };
const ENDLESS = /logs -f/;
const PICTURE = 'Photos 照片/2024 春节/全家福 family.png';
const DEMO = fileURLToPath(new URL('../../../config/demo.js', import.meta.url));

describe('the demo', () => {
  let scratch: Scratch;
  before(async () => {
    scratch = await createScratch('demo');
  });
  after(() => scratch.close());

  const start = (env: Record<string, string>): { child: ReturnType<typeof spawn>; output: () => string } => {
    const child = spawn(process.execPath, [DEMO], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], HOME: scratch.root, TMPDIR: scratch.root, ...env },
    });
    let text = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (piece: Buffer) => (text += piece.toString()));
    return { child, output: () => text };
  };
  const nothingLeft = async (): Promise<void> => {
    assert.deepEqual(await readdir(scratch.root), []);
    assert.deepEqual(await mountsBelow(scratch.root), []);
    // What was ended may still be about to leave the kernel's list.
    await until(
      'none of its processes is left',
      async () => (await processesNaming(scratch.root)).length === 0,
      { timeoutMs: 10_000 },
    );
  };

  /** Runs a line as a user would who copies it into a shell; what does not end is ended. */
  const run = async (line: string): Promise<{ code: number | null; output: string }> => {
    const child = spawn('sh', ['-c', ENDLESS.test(line) ? `timeout 6 ${line}` : line], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], LANG: 'C.UTF-8', HOME: scratch.root },
    });
    let text = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (piece: Buffer) => (text += piece.toString()));
    const [code] = (await within(line, 60_000, once(child, 'close'))) as [number | null];
    return { code, output: text };
  };

  /** Every line that is offered does what it promises. */
  const tryAll = async (text: string): Promise<void> => {
    const lines = (/To try, in another terminal:\n(.*?)\n\n/s.exec(text)?.[1] ?? '')
      .split('\n')
      .map((line) => line.trim());
    assert.ok(lines.length >= 13, text);
    for (const line of lines) {
      const tried = await run(line);
      assert.equal(tried.code, ENDLESS.test(line) ? 124 : 0, `${line}\n${tried.output}`);
      assert.ok(tried.output !== '' || /-o '|-T '/.test(line), `${line} says nothing`);
    }
    const room = /NAS: +(\S+)\/nas /.exec(text)?.[1] ?? '';
    const picture = await readFile(`${room}/nas/${PICTURE}`);
    for (const label of ['SMB', 'NFS', 'WebDAV'])
      assert.ok(picture.equals(await readFile(`${room}/copied-over-${label}.png`)), label);
    await until(
      'what was copied over WebDAV is on the NAS',
      async () => picture.equals(await readFile(`${room}/nas/Photos 照片/copied over WebDAV.png`)),
      { timeoutMs: 30_000 },
    );
  };

  it('does the main job, shows where and what to try, and ends cleanly on Ctrl-C', async () => {
    const { child, output } = start({});
    const ended = once(child, 'exit');
    await until('it is up', () => output().includes('Ctrl-C ends it') || child.exitCode !== null, {
      timeoutMs: 120_000,
    });
    const text = output();
    for (const part of [
      /cold, over the network: +[\d.]+ ms/,
      /warm, from the local cache: +[\d.]+ ms/,
      /is on the NAS/,
      /照片 Photos\s+\(healthy\)/,
      /http:\/\/127\.0\.0\.1:\d+/,
      /10 minutes/,
    ])
      assert.match(text, part);
    const url = /URL: +(\S+)/.exec(text)?.[1] ?? '';
    assert.equal((await fetch(`${url}/api/status`)).status, 200);
    for (const part of [
      /SMB +smb:\/\/127\.0\.0\.1:\d+/,
      /NFS +nfs:\/\/127\.0\.0\.1:\d+/,
      /WebDAV +http:\/\/127\.0\.0\.1:\d+/,
    ])
      assert.match(text, part);
    await tryAll(text);
    child.kill('SIGINT');
    const [code] = (await within('its end', 90_000, ended)) as [number | null];
    assert.equal(code, 0, output());
    assert.doesNotMatch(output(), /at .*\.js:\d/);
    await nothingLeft();
  });

  it(
    'prints the address of its page before all else, and the page shows its shares at work',
    {
      skip: !hasBrowser && SKIPS.chromium.reason,
    },
    async () => {
      // Of its own: the demo's folder is to be empty at the end.
      const own = await createScratch('demo-page');
      try {
        const browser = await openBrowser(own);
        const { child, output } = start({});
        const ended = once(child, 'exit');
        const isOver = (): boolean => child.exitCode !== null;
        await until('the address', () => /^The page: /m.test(output()) || isOver(), {
          timeoutMs: 120_000,
          everyMs: 20,
        });
        const [, origin = ''] =
          /^Starting a demo NAS .*\nThe page: (http:\/\/[\d.:]+)\/ /.exec(output()) ?? [];
        assert.notEqual(origin, '', output());
        const watched = await WatchedPage.open(browser, origin);
        const { page } = watched;
        await page.goto(`${origin}/`);
        assert.deepEqual(await page.locator('.share h3').allInnerTexts(), ['照片 Photos', 'Team Files']);
        await until('it has done its main job', () => output().includes('Ctrl-C ends it') || isOver(), {
          timeoutMs: 120_000,
        });
        for (const share of ['照片 Photos', 'Team Files'])
          await until(`${share} is up`, async () => (await watched.tone(share)) === 'good', {
            timeoutMs: 10_000,
          });
        await until('all is saved', async () => (await watched.sentence()) === 'saved', {
          timeoutMs: 10_000,
        });
        await page.locator('.share h3 a', { hasText: 'Photos' }).click();
        const history = page.locator('.events');
        await until('what has happened', async () => /Healthy/.test(await history.innerText()), {
          timeoutMs: 10_000,
        });
        if (MAY_WRITE)
          assert.match(await history.innerText(), /Nothing waits any more[^]*1 file waits to be uploaded/);
        watched.assertClean();
        child.kill('SIGINT');
        await within('its end', 90_000, ended);
        await nothingLeft();
      } finally {
        await own.close();
      }
    },
  );

  it('says which package is missing for a server, and offers nothing to try on that', async () => {
    const answers: Readonly<Record<string, unknown>> = {
      '/api/status': { smbd_running: false, nfs_exported: true, webdav_running: true },
      '/api/notices': [
        { level: 'warning', message: 'SMB: other' },
        { level: 'error', message: 'SMB: the SMB server is not installed: install the package samba' },
      ],
    };
    const api = createServer((request, response) =>
      response.end(JSON.stringify(answers[request.url ?? ''])),
    ).listen(0, '127.0.0.1');
    scratch.defer(() => api.close());
    await once(api, 'listening');
    const { where, toTry } = await describeServers(
      `http://127.0.0.1:${(api.address() as AddressInfo).port}`,
      SERVERS,
      '/nowhere',
    );
    assert.match(
      where.join('\n'),
      /^SMB +is not shown: the SMB server is not installed: install the package samba$/m,
    );
    assert.match(where.join('\n'), /^NFS +nfs:/m);
    assert.doesNotMatch(toTry.join('\n'), /smbclient/);
    api.closeAllConnections();
  });

  it('ends by itself after its time', async () => {
    const { child, output } = start({ MOUNTKEEPER_DEMO_MINUTES: '0.02' });
    const [code] = (await within('its end', 60_000, once(child, 'exit'))) as [number | null];
    assert.equal(code, 0, output());
    await nothingLeft();
  });

  it('says in a sentence what is wrong and leaves nothing when it cannot start', async () => {
    const { child, output } = start({ MOUNTKEEPER_RCLONE: '/nonexistent/rclone' });
    const [code] = (await within('its end', 60_000, once(child, 'exit'))) as [number | null];
    assert.equal(code, 1, output());
    assert.match(output(), /could not go on: .*rclone/);
    assert.doesNotMatch(output(), /at .*\.js:\d/);
    await nothingLeft();
  });
});
