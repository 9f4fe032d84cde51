/**
 * NFS for the table of protocols: a client of our own for files, `nfs-ls` and `nfs-cat` of libnfs beside
 * it.
 */
import { open, readdir, stat } from 'node:fs/promises';
import { streamOf, sumOfStream } from './program-output.ts';
import type { Client } from './protocols.ts';
import { runClient } from '../exports/client-programs.ts';
import { NfsClient } from './nfs-session.ts';

const url = (port: number, path: string): string => `nfs://127.0.0.1/${path}?version=4&nfsport=${port}`;

async function putFile(client: NfsClient, from: string, to: string): Promise<void> {
  const file = await open(from);
  try {
    await client.write(to, file, (await file.stat()).size);
  } finally {
    await file.close();
  }
}

async function withClient<T>(port: number, use: (client: NfsClient) => Promise<T>): Promise<T> {
  const client = await NfsClient.connect(port);
  try {
    return await use(client);
  } finally {
    client.close();
  }
}

/** The row for NFS. */
export const nfs: Client = {
  label: 'NFS',
  protocol: 'nfs',
  isServer: (args) => args[0]?.endsWith('ganesha.nfsd') === true,
  isShown: async ({ ports }, share) =>
    (await runClient('nfs-ls', [url(ports.nfs, share)], 10_000)).code === 0,
  upload: ({ ports }, from, { share, folder }) =>
    withClient(ports.nfs, async (client) => {
      await client.makeFolder(`${share}/${folder}`);
      for (const path of (await readdir(from, { recursive: true })).sort()) {
        if ((await stat(`${from}/${path}`)).isDirectory())
          await client.makeFolder(`${share}/${folder}/${path}`);
        else await putFile(client, `${from}/${path}`, `${share}/${folder}/${path}`);
      }
    }),
  download: ({ ports }, { share, folder }, paths) =>
    withClient(ports.nfs, async (client) => {
      const sums = new Map<string, string>();
      for (const path of paths)
        sums.set(
          path,
          await sumOfStream(client.read(`${share}/${folder}/${path}`)).catch(
            (error: unknown) => (error as Error).message,
          ),
        );
      return sums;
    }),
  stream: ({ ports }, share, path) => streamOf('nfs-cat', [url(ports.nfs, `${share}/${path}`)]),
  session: async ({ ports }, share) => {
    const client = await NfsClient.connect(ports.nfs);
    return {
      list: async () => (await client.list(share)).join('\n'),
      put: (file, name) => putFile(client, file, `${share}/${name}`),
      get: (name) => sumOfStream(client.read(`${share}/${name}`)),
      close: () => client.close(),
    };
  },
};
