/**
 * The README's pictures of the dashboard, taken of the real daemon at work: `npm run screenshots`, after the
 * build. One share uploads, the other is at rest.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openBrowser } from './support/dashboard/chromium.ts';
import { Daemon } from './support/daemon/daemon.ts';
import { PROJECT } from './runner/test-files.ts';
import { Nas } from './support/nas/nas.ts';
import { freePort } from './support/platform/free-port.ts';
import { createScratch } from './support/platform/scratch-folder.ts';
import { sleep, until } from './support/platform/wait.ts';

const FOLDER = join(PROJECT, 'docs/images');
const MIB = 1024 * 1024;

const scratch = await createScratch('pictures');
try {
  const nas = await Nas.create(scratch, {
    files: { 'Photos/2024/a.raw': 12 * MIB, 'Photos/2024/b.raw': 14 * MIB, 'Team/plan.pdf': 90_000 },
  });
  const daemon = await Daemon.create(scratch, {
    connections: [nas.connection('studio')],
    shares: [
      { name: 'photos', connection: 'studio', remote_path: 'Photos' },
      { name: 'team', connection: 'studio', remote_path: 'Team' },
    ],
    sections: {
      web: { password: 'only for the pictures' },
      mount: { write_back: '5s' },
      cache: { max_size: '200M' },
      bandwidth: { up: '2M' },
      webdav: {
        enabled: true,
        port: await freePort(),
        users: [{ name: 'ada', password: 'only for the pictures' }],
      },
    },
  });
  await daemon.writeConfig(`${daemon.text()}\n[[warmup.rules]]\nshare = "photos"\npath = "2024"\n`);
  void daemon.spawn();
  const credentials = { username: 'admin', password: 'only for the pictures' };
  const headers = {
    authorization: `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`,
  };
  const status = async () =>
    (
      await daemon.request<{
        readonly warmup: readonly { readonly state: string }[];
        readonly webdav_running: boolean;
      }>('GET', '/api/status', undefined, headers)
    ).body;
  await until(
    'all is up',
    async () => {
      const now = await status();
      return now.webdav_running && now.warmup.every(({ state }) => state === 'complete');
    },
    { timeoutMs: 60_000 },
  );
  // Figures of the cache are counted every 15 s.
  await sleep(17_000);
  for (const name of ['IMG_0412.raw', 'IMG_0413.raw', 'IMG_0414.raw'])
    await writeFile(`${daemon.mountPoint('photos')}/${name}`, Buffer.alloc(9 * MIB, name));
  await sleep(4_000);
  const browser = await openBrowser(scratch);
  await mkdir(FOLDER, { recursive: true });
  for (const [name, path, colorScheme, width] of [
    ['dashboard', '/', 'light', 780],
    ['dashboard-share', '/shares/photos', 'dark', 1100],
  ] as const) {
    const context = await browser.newContext({
      locale: 'en',
      colorScheme,
      viewport: { width, height: 860 },
      extraHTTPHeaders: headers,
    });
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${daemon.port}${path}`);
    await sleep(2_000);
    await page.screenshot({ path: join(FOLDER, `${name}.png`) });
    await context.close();
  }
} finally {
  await scratch.close();
}
