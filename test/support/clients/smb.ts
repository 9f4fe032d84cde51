/** SMB for the table of protocols: Samba's smbclient. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { checksumOf } from '../nas/nas.ts';
import { streamOf } from './program-output.ts';
import type { Access, Client } from './protocols.ts';
import { SmbSession, runClient, smb as smbclient } from '../exports/client-programs.ts';

const DEADLINE_MS = 90_000;
const TROUBLE = /NT_STATUS_\w+|Not connected|session setup failed|Connection to \S+ failed/;

const args = ({ ports, user }: Access, share: string, commands: string): string[] => [
  `//127.0.0.1/${share}`,
  '-p',
  String(ports.smb),
  '-U',
  user,
  '-m',
  'SMB3',
  '-E',
  '-c',
  commands,
];

async function run(access: Access, share: string, commands: string): Promise<void> {
  const { code, output } = await runClient('smbclient', args(access, share, commands), DEADLINE_MS);
  if (code !== 0 || TROUBLE.test(output)) throw new Error(output.trim().slice(-300));
}

/** The row for SMB. */
export const smb: Client = {
  label: 'SMB',
  protocol: 'smb',
  isServer: (args) => args[0]?.endsWith('smbd') === true && args.includes('--foreground'),
  isShown: async ({ ports, user }, share) =>
    (await smbclient(share, 'ls', { port: ports.smb, user })).code === 0,
  upload: (access, from, { share, folder }) =>
    run(access, share, `prompt off; recurse on; mkdir "${folder}"; cd "${folder}"; lcd "${from}"; mput *`),
  download: async (access, { share, folder }, paths) => {
    const room = await mkdtemp(access.scratch.path('smb-'));
    await run(access, share, `prompt off; recurse on; cd "${folder}"; lcd "${room}"; mget *`);
    const sums = new Map<string, string>();
    for (const path of paths)
      sums.set(path, await checksumOf(`${room}/${path}`).catch((error: unknown) => (error as Error).message));
    await rm(room, { recursive: true });
    return sums;
  },
  stream: (access, share, path) =>
    streamOf('smbclient', args(access, share, `get "${path.replaceAll('/', '\\')}" -`)),
  session: async (access, share) => {
    const { scratch, ports, user } = access;
    const session = new SmbSession(share, { port: ports.smb, user }, scratch);
    /** In the same session; the tree is entered anew, as every system's client does by itself. */
    const order = async (command: string): Promise<string> => {
      if (!session.isOpen) throw new Error('smbclient has ended');
      let output = await session.run(command);
      if (TROUBLE.test(output)) {
        await session.run(`tcon "${share}"`);
        output = await session.run(command);
      }
      if (TROUBLE.test(output) || !session.isOpen) throw new Error(output.trim().slice(-300));
      return output;
    };
    await order('ls');
    const room = await mkdtemp(scratch.path('smb-session-'));
    return {
      list: () => order('ls'),
      put: async (file, name) => void (await order(`put "${file}" "${name}"`)),
      get: async (name) => {
        await order(`get "${name}" "${room}/got"`);
        await readFile(`${room}/got`);
        return checksumOf(`${room}/got`);
      },
      close: () => session.close(),
    };
  },
};
