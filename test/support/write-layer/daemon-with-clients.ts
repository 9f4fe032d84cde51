/**
 * A daemon with a share on a write layer, its clients over SMB, NFS and WebDAV, and a plain folder that has to
 * stay the same.
 */
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { CLIENTS } from '../clients/protocols.ts';
import type { Access, Session } from '../clients/protocols.ts';
import { NfsClient } from '../clients/nfs-session.ts';
import { startWithExports } from '../clients/daemon-with-exports.ts';
import type { Daemon } from '../daemon/daemon.ts';
import { runClient, smb } from '../exports/client-programs.ts';
import { Nas } from '../nas/nas.ts';
import { currentRclone } from '../nas/rclone-binaries.ts';
import { createScratch } from '../platform/scratch-folder.ts';
import type { Scratch } from '../platform/scratch-folder.ts';
import { until } from '../platform/wait.ts';
import { ShareWorker } from './share-worker.ts';
import { differences, treeOf } from './folder-tree.ts';

/** A name that no protocol can carry without encoding. */
export const SHARE = 'team 照片';
/** How long uploads may take, in milliseconds. */
export const SYNCED_MS = 60_000;
const CLIENT_MS = 60_000;

/** The daemon, its clients and the plain folder. */
export class DaemonWithClients {
  readonly nas: Nas;
  readonly daemon: Daemon;
  readonly access: Access;
  /** Where the share is mounted. */
  readonly root: string;
  readonly model: string;
  readonly hands: ShareWorker;
  readonly #scratch: Scratch;

  private constructor(
    scratch: Scratch,
    { nas, daemon, access }: { readonly nas: Nas; readonly daemon: Daemon; readonly access: Access },
  ) {
    this.#scratch = scratch;
    this.nas = nas;
    this.daemon = daemon;
    this.access = access;
    this.root = daemon.mountPoint(SHARE);
    this.model = scratch.path('model');
    this.hands = new ShareWorker(scratch);
  }

  /** `files`: on the NAS, of which the folder `team` is shared. */
  static async open(name: string, files: Readonly<Record<string, number>>): Promise<DaemonWithClients> {
    const scratch = await createScratch(name);
    const nas = await Nas.create(scratch, { files });
    cpSync(nas.path('team'), scratch.path('model'), { recursive: true });
    const house = await startWithExports(scratch, {
      rclone: currentRclone(),
      connections: [nas.connection('nas')],
      shares: [{ name: SHARE, connection: 'nas', remote_path: 'team' }],
    });
    await house.daemon.healthy();
    for (const client of CLIENTS) {
      await until(`${client.label} shows it`, () => client.isShown(house.access, SHARE), {
        timeoutMs: 30_000,
      });
    }
    return new DaemonWithClients(scratch, { ...house, nas });
  }

  /** Ends all of it and removes its folder. */
  close(): Promise<void> {
    return this.#scratch.close();
  }

  /** A path of the plain folder. */
  at(path: string): string {
    return `${this.model}/${path}`;
  }

  /** Throws an AssertionError unless the NAS holds just what the plain folder holds. */
  assertOnNas(when: string): void {
    assert.deepEqual(differences(treeOf(this.nas.path('team')), treeOf(this.model)), [], when);
  }

  /** As soon as the status says so, not later. */
  async synced(): Promise<void> {
    await this.daemon.synced(SYNCED_MS);
    this.assertOnNas('though all_synced is true');
  }

  /** Runs a shell script in a folder. Rejects when one of its commands fails. */
  async sh(folder: string, script: string): Promise<void> {
    const { code, output } = await runClient('sh', ['-ec', `cd "${folder}" && { ${script}\n}`], CLIENT_MS);
    assert.equal(code, 0, `${script}: ${output}`);
  }

  /** On the share and on the plain folder. */
  async both(script: string): Promise<void> {
    await this.sh(this.root, script);
    await this.sh(this.model, script);
  }

  /** Runs commands of smbclient in the share. Rejects when one fails. */
  async bySmb(commands: string): Promise<void> {
    const { code, output } = await smb(SHARE, commands, {
      port: this.access.ports.smb,
      user: this.access.user,
    });
    assert.ok(code === 0 && !/NT_STATUS_/.test(output), `${commands}: ${output}`);
  }

  /** One request with curl. Rejects unless its status is 20x. */
  async byWebdav(method: string, path: string, to?: string): Promise<void> {
    const { ports, user } = this.access;
    const url = (one: string): string =>
      `http://127.0.0.1:${ports.webdav}/${[SHARE, ...one.split('/')].map(encodeURIComponent).join('/')}`;
    const destination = to === undefined ? [] : ['-H', `Destination: ${url(to)}`, '-H', 'Overwrite: T'];
    const asked = [
      '-sS',
      '-o',
      '/dev/null',
      '-w',
      '%{http_code}',
      '-u',
      user.replace('%', ':'),
      '-X',
      method,
      ...destination,
      url(path),
    ];
    assert.match((await runClient('curl', asked)).output, /^20[0-9]$/, `${method} ${path}`);
  }

  /** A WebDAV client that stays connected. */
  webdavSession(): Promise<Session> {
    const [client] = CLIENTS.filter(({ protocol }) => protocol === 'webdav');
    return client!.session(this.access, SHARE);
  }

  /** An NFS client that stays connected. Paths begin with the share's name. */
  nfsClient(): Promise<NfsClient> {
    return NfsClient.connect(this.access.ports.nfs);
  }

  /** On the local disk, outside of the share. */
  async file(name: string, content: string): Promise<string> {
    await writeFile(this.#scratch.path(name), content);
    return this.#scratch.path(name);
  }
}
