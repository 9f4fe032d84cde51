/** An age of listings with an rclone that notes what it is asked, and a NAS that can be changed. */
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { TestContext } from 'node:test';
import type { Clock, Logger } from 'mountkeeper';
import { ListingAge } from '../../../plugins/mount/rclone/listing-age.ts';

export const MINUTE_MS = 60_000;
/** Folders on the NAS, by the folder that they lie in. */
const FOLDERS: Readonly<Record<string, readonly string[]>> = {
  '': ['a', 'b', 'locked', 'written'],
  a: ['a/x', 'a/y'],
  'a/x': [],
  b: ['b/deep', 'b/in'],
};
/** A file on the NAS, as rclone lists it. */
interface ListedFile {
  readonly Name: string;
  readonly Size: number;
  readonly ModTime: string;
  readonly ID?: string;
}
export const ONE_FILE: ListedFile = { Name: 'f', Size: 7, ModTime: '2026-01-02T03:04:05Z' };

export interface World {
  readonly ages: ListingAge;
  readonly calls: string[];
  readonly at: {
    nowMs: number;
    isThere: boolean;
    isLocked: boolean;
    isSlow: boolean;
    refuses: string;
    how: string;
  };
  /** Files on the NAS, by the folder that they lie in. */
  readonly files: Record<string, readonly ListedFile[]>;
  /** More folders in `a`. */
  readonly crowd: string[];
  /** Times of folders on the NAS. */
  readonly times: Record<string, string>;
  /** The remote answers, and what comes of it is over. */
  answer(): Promise<void>;
}

function called(path: string, asked: Readonly<Record<string, string>>): string {
  const named = Object.entries(asked)
    .filter(([name]) => /^(dir|file)/.test(name))
    .map(([, value]) => value)
    .join(' ');
  const what = `${path.split('/').at(-1)} ${named || (asked['remote'] ?? '')}`.trim();
  return asked['recursive'] === 'true' ? `${what} as a tree` : what;
}

/** Looked up in a folder, which rclone reads for it unless it has. */
export const NONE = '.mountkeeper-no-such-name';

/** `isRead`: the first reading of a new rclone is over. */
export async function createWorld(t: TestContext, { isNew = true, isRead = true } = {}): Promise<World> {
  const calls: string[] = [];
  const at = {
    nowMs: 0,
    isThere: true,
    isLocked: true,
    isSlow: false,
    refuses: '',
    how: 'connection refused',
  };
  const files: Record<string, readonly ListedFile[]> = { 'a/x': [ONE_FILE] };
  const times: Record<string, string> = {};
  const crowd: string[] = [];
  const listing = (folder: string, isOfFolders: boolean): object[] => [
    ...[...(FOLDERS[folder] ?? []), ...(folder === 'a' ? crowd : [])].map((Path) => ({
      Path,
      Name: Path,
      IsDir: true,
      Size: -1,
      ModTime: times[Path] ?? '',
    })),
    ...(isOfFolders ? [] : (files[folder] ?? [])).map((file) => ({
      ...file,
      Path: `${folder}/${file.Name}`,
      IsDir: false,
    })),
  ];
  const answered = (path: string, asked: Record<string, string>): { status: number; body: object } => {
    const folder = asked['remote'] ?? asked['dir'] ?? '';
    if (path.endsWith('/fsinfo')) return { status: 200, body: { Features: { SlowModTime: at.isSlow } } };
    calls.push(called(path, asked));
    if (!at.isThere || (at.isLocked && folder.startsWith('locked')))
      return { status: 500, body: { error: 'no answer' } };
    if (calls.at(-1) === at.refuses) return { status: 500, body: { error: at.how } };
    return {
      status: 200,
      body: path.endsWith('/list')
        ? { list: listing(folder, JSON.stringify(asked).includes('"dirsOnly":true')) }
        : { result: { [folder]: 'OK' } },
    };
  };
  const server = createServer((request, response) => {
    void request.toArray().then((pieces) => {
      const { status, body } = answered(
        request.url ?? '',
        JSON.parse(Buffer.concat(pieces as Buffer[]).toString()) as Record<string, string>,
      );
      response.writeHead(status).end(JSON.stringify(body));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const [cached, written] = [
    await mkdtemp(join(tmpdir(), 'mk-ages-')),
    await mkdtemp(join(tmpdir(), 'mk-ages-written-')),
  ];
  t.after(async () => {
    server.close();
    server.closeAllConnections();
    for (const root of [cached, written]) await rm(root, { recursive: true });
  });
  for (const folder of ['a/x', 'locked', 'gone']) await mkdir(join(cached, folder), { recursive: true });
  await mkdir(join(written, 'written'));
  let renewal: Promise<unknown> = Promise.resolve();
  const ages = new ListingAge({
    address: { port: (server.address() as AddressInfo).port, user: '', password: '' },
    fs: 'nas:',
    keptRoots: [cached, written],
    dirCacheMs: 15 * MINUTE_MS,
    isNew,
    clock: { monotonic: () => at.nowMs } as unknown as Clock,
    log: { debug: () => undefined, info: () => undefined } as unknown as Logger,
    end: new AbortController().signal,
    around: (renew) => {
      const running = renew();
      renewal = running.catch(() => undefined);
      return running;
    },
  });
  const answer = async (): Promise<void> => {
    ages.remoteAnswered();
    await renewal;
    // What it has found out is noted by then.
    await setImmediate();
  };
  if (isNew && isRead) await answer();
  calls.length = 0;
  return { ages, calls, at, files, crowd, times, answer };
}
