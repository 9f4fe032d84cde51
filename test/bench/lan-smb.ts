/** A share over SMB beside a smbd that somebody set up by the manual over a bare mount. */
import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { fileURLToPath } from 'node:url';
import { freePort } from '../support/platform/free-port.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { until } from '../support/platform/wait.ts';
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
import type { Side } from './lan-stage.ts';

const PASSWORD = 'b3nch-Wort';
const RANDOM_READER = fileURLToPath(new URL('../../../test/bench/smb-random-reads.py', import.meta.url));

interface Door {
  readonly port: number;
  readonly user: string;
}

/**
 * A client that insists on signatures, as those of current Windows and macOS do, or takes what the server
 * wants.
 */
type Manner = 'signs' | 'takes what comes';

function smbclient({ port, user }: Door, commands: string, manner: Manner = 'signs'): Promise<string> {
  const protection = manner === 'signs' ? ['--client-protection=sign'] : [];
  return runClient(
    'smbclient',
    [`//127.0.0.1/${SHARE}`, '-p', String(port), '-U', user, '-m', 'SMB3', ...protection, '-c', commands],
    { env: { PASSWD: PASSWORD } },
  );
}

/** smbclient says itself how fast a transfer was; logging in is not part of it. */
function transferMs(output: string, bytes: number): number {
  const kibPerSecond = /\(([\d.]+) (?:KiloBytes\/sec|kb\/s)\)/.exec(output)?.[1];
  if (kibPerSecond === undefined) throw new Error(`smbclient did not say how fast: ${output.slice(-300)}`);
  return (bytes / 1024 / Number(kibPerSecond)) * 1000;
}

interface Source {
  readonly path: string;
  readonly bytes: number;
  readonly bigBytes: number;
}

/** libsmbclient reads its settings in the user's home. */
async function homeThatSigns(scratch: Scratch): Promise<string> {
  const home = scratch.path('smb-home');
  await mkdir(`${home}/.smb`, { recursive: true });
  await writeFile(`${home}/.smb/smb.conf`, '[global]\nclient signing = required\n');
  return home;
}

function sideOf(door: Door, source: Source, { home, manner }: { home: string; manner: Manner }): Side {
  return {
    sequentialRead: async () =>
      transferMs(await smbclient(door, `get ${BIG} /dev/null`, manner), source.bigBytes),
    sequentialWrite: async (name) => {
      const spanMs = transferMs(
        await smbclient(door, `put "${source.path}" "${name}"`, manner),
        source.bytes,
      );
      await smbclient(door, `del "${name}"`);
      return spanMs;
    },
    randomReads: async (offsets) =>
      Number(
        await runClient(
          '/usr/bin/python3',
          [
            RANDOM_READER,
            `smb://127.0.0.1/${SHARE}/${BIG}`,
            String(door.port),
            door.user,
            String(RANDOM_BYTES),
          ],
          { input: [PASSWORD, ...offsets].join('\n'), env: { HOME: home } },
        ),
      ),
    listing: () => listed(smbclient(door, `cd ${MANY}; ls`, manner)),
  };
}

/** Nothing said but where it keeps its files, so that the system's own is left alone. */
async function startByHand(scratch: Scratch, path: string): Promise<Door> {
  const [port, user, room] = [await freePort(), userInfo().username, scratch.path('smbd-by-hand')];
  const folders = ['private', 'lock', 'state', 'cache', 'pid', 'ncalrpc', 'log'];
  for (const folder of folders) await mkdir(`${room}/${folder}`, { recursive: true });
  const conf = `${room}/smb.conf`;
  await writeFile(
    conf,
    [
      '[global]',
      'server role = standalone server',
      `smb ports = ${port}`,
      'interfaces = 127.0.0.1',
      'bind interfaces only = yes',
      'disable netbios = yes',
      `private dir = ${room}/private`,
      `lock directory = ${room}/lock`,
      `state directory = ${room}/state`,
      `cache directory = ${room}/cache`,
      `pid directory = ${room}/pid`,
      `ncalrpc dir = ${room}/ncalrpc`,
      `passdb backend = tdbsam:${room}/private/passdb.tdb`,
      `log file = ${room}/log/log.smbd`,
      `[${SHARE}]`,
      `path = ${path}`,
      'read only = no',
      '',
    ].join('\n'),
  );
  await runClient('smbpasswd', ['-c', conf, '-s', '-a', user], { input: `${PASSWORD}\n${PASSWORD}\n` });
  // A group of its own: at its end smbd signals the whole group that it is in.
  const server = spawn('/usr/sbin/smbd', ['--foreground', '--no-process-group', `--configfile=${conf}`], {
    stdio: 'ignore',
    detached: true,
  });
  scratch.defer(() => server.kill('SIGTERM'));
  const door = { port, user };
  await until('smbd by hand answers', async () => (await smbclient(door, 'ls')) !== '', {
    timeoutMs: 15_000,
    everyMs: 100,
  });
  return door;
}

export async function benchSmb(scratch: Scratch): Promise<Figure[]> {
  const port = await freePort();
  const stage = await openStage(scratch, {
    protocol: 'smb',
    sections: { smb: { enabled: true, port, users: [{ name: 'alice', password: PASSWORD }] } },
  });
  const [ours, byHand] = [{ port, user: 'alice' }, await startByHand(scratch, stage.barePoint)];
  await awaitFlag(stage.daemon, 'smbd_running');
  await until('the share is shown', async () => (await smbclient(ours, 'ls')) !== '', { timeoutMs: 10_000 });
  const home = await homeThatSigns(scratch);
  const sides = (manner: Manner): [Side, Side] => [
    sideOf(ours, stage.source, { home, manner }),
    sideOf(byHand, stage.source, { home, manner }),
  ];
  const signed = await sideBySide(...sides('signs'));
  const unsigned = await sideBySide(...sides('takes what comes'), ['read', 'write']);
  await stage.end();
  const beside = 'smbd by its defaults over a bare mount';
  return [
    ...rows(signed, {
      protocol: 'SMB',
      beside,
      note:
        'Clients: smbclient, and libsmbclient for the random reads; ' +
        'both sides with a password. ' +
        'The client asks for signatures, as those of current Windows and macOS do.',
      notes: {
        random:
          "Our users are nobody on this machine, and the files are the daemon's: " +
          'smbd changes from one to the other with every request. ' +
          'By hand both are the same user.',
      },
    }),
    ...rows(unsigned, {
      protocol: 'SMB, a client that asks for no signatures',
      beside,
      aim: '–',
      note: 'Ours signs all the same, the other side does not: what that costs.',
    }),
  ];
}
