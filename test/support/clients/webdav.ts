/** WebDAV for the table of protocols: curl. */
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { checksumOf } from '../nas/nas.ts';
import { streamOf } from './program-output.ts';
import type { Access, Client } from './protocols.ts';
import { runClient } from '../exports/client-programs.ts';
import type { ClientResult } from '../exports/client-programs.ts';

const DEADLINE_MS = 90_000;
const MULTI_STATUS = '207';

/** Options of one transfer, as curl's configuration file has them. */
type Transfer = Readonly<Record<string, string | true>>;

const url = ({ ports }: Access, path: string): string =>
  `http://127.0.0.1:${ports.webdav}/${path.split('/').map(encodeURIComponent).join('/')}`;

function optionsOf({ user }: Access, transfer: Transfer): string {
  const all: Transfer = {
    'path-as-is': true,
    globoff: true,
    silent: true,
    'show-error': true,
    user: user.replace('%', ':'),
    ...transfer,
  };
  return Object.entries(all)
    .map(([name, value]) => (value === true ? name : `${name} = ${JSON.stringify(value)}`))
    .join('\n');
}

/**
 * One curl carries out all of them, one after the other, on one connection; the first that fails is the last.
 */
async function curl(
  access: Access,
  transfers: readonly Transfer[],
  timeoutMs = DEADLINE_MS,
): Promise<ClientResult> {
  const room = await mkdtemp(access.scratch.path('curl-'));
  await writeFile(
    `${room}/config`,
    ['fail-early', transfers.map((one) => optionsOf(access, one)).join('\nnext\n')].join('\n'),
  );
  try {
    return await runClient('curl', ['--disable', '--config', `${room}/config`], timeoutMs);
  } finally {
    await rm(room, { recursive: true });
  }
}

async function done(access: Access, transfers: readonly Transfer[]): Promise<string> {
  const { code, output } = await curl(access, transfers);
  if (code !== 0) throw new Error(output.trim().slice(-300) || `curl ended with ${code}`);
  return output;
}

const put = (access: Access, file: string, to: string): Transfer => ({
  fail: true,
  'upload-file': file,
  url: url(access, to),
  output: '/dev/null',
});
const get = (access: Access, path: string, file: string): Transfer => ({
  fail: true,
  url: url(access, path),
  output: file,
});
const list = (access: Access, path: string): Transfer => ({
  fail: true,
  request: 'PROPFIND',
  header: 'Depth: 1',
  url: `${url(access, path)}/`,
});

/** The row for WebDAV. */
export const webdav: Client = {
  label: 'WebDAV',
  protocol: 'webdav',
  isServer: (args) => args[1]?.endsWith('/proxy/main.js') === true,
  isShown: async (access, share) => {
    const ask = { ...list(access, share), output: '/dev/null', 'write-out': '%{http_code}', 'max-time': '2' };
    return (await curl(access, [ask], 10_000)).output.endsWith(MULTI_STATUS);
  },
  upload: async (access, from, { share, folder }) => {
    const folders: Transfer[] = [
      { fail: true, request: 'MKCOL', url: `${url(access, `${share}/${folder}`)}/` },
    ];
    const files: Transfer[] = [];
    for (const path of (await readdir(from, { recursive: true })).sort()) {
      if ((await stat(`${from}/${path}`)).isDirectory())
        folders.push({ fail: true, request: 'MKCOL', url: `${url(access, `${share}/${folder}/${path}`)}/` });
      else files.push(put(access, `${from}/${path}`, `${share}/${folder}/${path}`));
    }
    await done(access, [...folders, ...files]);
  },
  download: async (access, { share, folder }, paths) => {
    const room = await mkdtemp(access.scratch.path('dav-'));
    await done(
      access,
      paths.map((path, index) => get(access, `${share}/${folder}/${path}`, `${room}/${index}`)),
    );
    const sums = new Map<string, string>();
    // What is empty makes curl no file.
    for (const [index, path] of paths.entries())
      sums.set(path, await checksumOf(`${room}/${index}`).catch(() => checksumOf('/dev/null')));
    await rm(room, { recursive: true });
    return sums;
  },
  stream: (access, share, path) =>
    streamOf('curl', [
      '--disable',
      '--silent',
      '--show-error',
      '--fail',
      '--user',
      access.user.replace('%', ':'),
      url(access, `${share}/${path}`),
    ]),
  session: async (access, share) => {
    const room = await mkdtemp(access.scratch.path('dav-session-'));
    return {
      list: async () => decodeURIComponent(await done(access, [list(access, share)])),
      put: async (file, name) => void (await done(access, [put(access, file, `${share}/${name}`)])),
      get: async (name) => {
        await rm(`${room}/got`, { force: true });
        await done(access, [get(access, `${share}/${name}`, `${room}/got`)]);
        return checksumOf(`${room}/got`).catch(() => checksumOf('/dev/null'));
      },
      close: () => undefined,
    };
  },
};
