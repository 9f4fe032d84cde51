/** A share over NFS beside an NFS-Ganesha that somebody set up by the manual over a bare mount. */
import { spawn } from 'node:child_process';
import { mkdir, open, writeFile } from 'node:fs/promises';
import { NfsClient } from '../support/clients/nfs-session.ts';
import { freePort } from '../support/platform/free-port.ts';
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

/** A client of its own for each measure: no state is left over, and none can grow old. */
async function withClient(port: number, work: (client: NfsClient) => Promise<void>): Promise<number> {
  const client = await NfsClient.connect(port);
  try {
    return await timed(work(client));
  } finally {
    client.close();
  }
}

async function readWhole(client: NfsClient, bytes: number): Promise<void> {
  let seen = 0;
  for await (const block of client.read(`${SHARE}/${BIG}`)) seen += block.length;
  if (seen !== bytes) throw new Error(`NFS gave ${seen} of ${bytes} bytes`);
}

function sideOf(port: number, source: Stage['source']): Side {
  return {
    sequentialRead: () => withClient(port, (client) => readWhole(client, source.bigBytes)),
    sequentialWrite: async (name) => {
      const file = await open(source.path);
      try {
        return await withClient(port, (client) => client.write(`${SHARE}/${name}`, file, source.bytes));
      } finally {
        await file.close();
        await withClient(port, (client) => client.remove(`${SHARE}/${name}`));
      }
    },
    randomReads: (offsets) =>
      withClient(port, (client) => client.readPlaces(`${SHARE}/${BIG}`, offsets, RANDOM_BYTES)),
    listing: () =>
      listed(runClient('nfs-ls', [`nfs://127.0.0.1/${SHARE}/${MANY}?version=4&nfsport=${port}`])),
  };
}

/**
 * Nothing said but the protocol, the port, and where it keeps its files; clients need not wait out the time
 * after a start.
 */
async function startByHand(scratch: Scratch, path: string): Promise<number> {
  const [port, room] = [await freePort(), scratch.path('ganesha-by-hand')];
  await mkdir(`${room}/recovery`, { recursive: true });
  const conf = `${room}/ganesha.conf`;
  await writeFile(
    conf,
    `NFS_CORE_PARAM {
  Protocols = 4; NFS_Port = ${port}; Bind_addr = 127.0.0.1; Enable_NLM = false; Enable_RQUOTA = false;
}
NFSV4 { Graceless = true; RecoveryBackend = fs; RecoveryRoot = "${room}/recovery"; }
EXPORT { Export_Id = 1; Path = "${path}"; Pseudo = "/${SHARE}"; Access_Type = RW;
  Squash = No_Root_Squash; SecType = sys; Protocols = 4; Transports = TCP; FSAL { Name = VFS; } }
`,
  );
  const server = spawn(
    '/usr/bin/ganesha.nfsd',
    ['-F', '-f', conf, '-L', `${room}/ganesha.log`, '-p', `${room}/pid`],
    { stdio: 'ignore' },
  );
  scratch.defer(() => server.kill('SIGKILL'));
  await until(
    'ganesha by hand answers',
    async () => (await runClient('nfs-ls', [`nfs://127.0.0.1/${SHARE}?version=4&nfsport=${port}`])) !== '',
    { timeoutMs: 15_000, everyMs: 200 },
  );
  return port;
}

export async function benchNfs(scratch: Scratch): Promise<Figure[]> {
  const port = await freePort();
  const stage = await openStage(scratch, {
    protocol: 'nfs',
    sections: { nfs: { enabled: true, port, allowed_clients: ['127.0.0.1'] } },
  });
  const byHand = await startByHand(scratch, stage.barePoint);
  await awaitFlag(stage.daemon, 'nfs_exported');
  const spans = await sideBySide(sideOf(port, stage.source), sideOf(byHand, stage.source));
  await stage.end();
  return rows(spans, {
    protocol: 'NFS',
    beside: 'NFS-Ganesha by its defaults over a bare mount',
    note:
      'Clients: one of NFS 4.0 that opens, reads and writes blocks of 256 KiB as a ' +
      "kernel's does, and nfs-ls for the listing.",
  });
}
