/**
 * A share over WebDAV beside an `rclone serve webdav` that somebody started by the manual over a bare mount.
 */
import { spawn } from 'node:child_process';
import { freePort } from '../support/platform/free-port.ts';
import { currentRclone } from '../support/nas/rclone-binaries.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { timed, until } from '../support/platform/wait.ts';
import { runClient } from './client.ts';
import type { Figure } from './figures.ts';
import {
  awaitFlag,
  BIG,
  listed,
  MANY,
  openStage,
  RANDOM_BYTES,
  rows,
  SHARE,
  sideBySide,
} from './lan-stage.ts';
import type { Side, Stage } from './lan-stage.ts';

const USER = 'alice';
const PASSWORD = 'b3nch-Wort';

interface Door {
  readonly port: number;
  /** Where the share's own files begin. */
  readonly root: string;
}

/** The settings come by standard input: a command line can be read by everyone. */
function curl({ port }: Door, settings: readonly string[]): Promise<string> {
  const login = `user = "${USER}:${PASSWORD}"`;
  return runClient('curl', ['--config', '-'], {
    input: settings
      .map((one) => `${one}\n${login}\n`)
      .join('next\n')
      .replaceAll('@', `http://127.0.0.1:${port}`),
  });
}

const visible = 'silent\nshow-error\nfail';
const quiet = `${visible}\noutput = "/dev/null"`;

function sideOf(door: Door, source: Stage['source']): Side {
  const url = (path: string): string => `url = "@${door.root}/${encodeURI(path)}"`;
  return {
    sequentialRead: () => timed(curl(door, [`${quiet}\n${url(BIG)}`])),
    sequentialWrite: async (name) => {
      const spanMs = await timed(curl(door, [`${quiet}\nupload-file = "${source.path}"\n${url(name)}`]));
      await curl(door, [`${quiet}\nrequest = "DELETE"\n${url(name)}`]);
      return spanMs;
    },
    randomReads: (offsets) =>
      timed(
        curl(
          door,
          offsets.map((offset) => `${quiet}\nrange = "${offset}-${offset + RANDOM_BYTES - 1}"\n${url(BIG)}`),
        ),
      ),
    listing: () =>
      listed(curl(door, [`${visible}\nrequest = "PROPFIND"\nheader = "Depth: 1"\n${url(`${MANY}/`)}`])),
  };
}

async function startByHand(scratch: Scratch, path: string, rclone: string): Promise<Door> {
  const port = await freePort();
  const env = {
    PATH: process.env['PATH'],
    HOME: scratch.path('webdav-home'),
    RCLONE_USER: USER,
    RCLONE_PASS: PASSWORD,
  };
  const server = spawn(rclone, ['serve', 'webdav', path, '--addr', `127.0.0.1:${port}`], {
    stdio: 'ignore',
    env,
  });
  scratch.defer(() => server.kill('SIGKILL'));
  return { port, root: '' };
}

/** Each share is served from within its mount. */
export async function benchWebdav(scratch: Scratch): Promise<Figure[]> {
  const rclone = currentRclone();
  const port = await freePort();
  const stage = await openStage(scratch, {
    protocol: 'webdav',
    sections: { webdav: { enabled: true, port, users: [{ name: USER, password: PASSWORD }] } },
  });
  const [ours, byHand] = [{ port, root: `/${SHARE}` }, await startByHand(scratch, stage.barePoint, rclone)];
  await awaitFlag(stage.daemon, 'webdav_running');
  const [our, bare] = [sideOf(ours, stage.source), sideOf(byHand, stage.source)];
  for (const side of [our, bare])
    await until('the share is shown', () => side.listing(), { timeoutMs: 15_000 });
  const spans = await sideBySide(our, bare);
  await stage.end();
  return rows(spans, {
    protocol: 'WebDAV',
    beside: 'rclone serve webdav by its defaults over a bare mount',
    note: 'Client: curl, with a password on both sides; the random reads are requests with a range on one connection.',
    notes: {
      list:
        "By hand, the listing comes from that server's own memory and may be five minutes " +
        'old; ours shows at once what has come in over other protocols.',
    },
  });
}
