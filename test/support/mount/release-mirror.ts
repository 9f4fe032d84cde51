/** A mirror of rclone's download site on loopback, with releases that a key of the test's own has signed. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { createCleartextMessage, generateKey, readPrivateKey, sign } from 'openpgp';
import { buildName } from '../../../plugins/mount/releases/install.ts';
import type { ReleaseKey } from '../../../plugins/mount/releases/signed-checksums.ts';
import { parseVersion } from '../../../plugins/mount/releases/versions.ts';
import type { Version } from '../../../plugins/mount/releases/versions.ts';
import { zipArchive } from './zip-archive.ts';

export interface SigningKey extends ReleaseKey {
  readonly privateKey: string;
}

export async function signingKey(): Promise<SigningKey> {
  const userIDs = [{ name: 'Test', email: 'test@example.org' }];
  const { privateKey, publicKey } = await generateKey({
    userIDs,
    format: 'armored',
  });
  const fingerprint = (await readPrivateKey({ armoredKey: privateKey })).getFingerprint();
  return { armored: publicKey, fingerprint, privateKey };
}

export async function signedText(text: string, { privateKey }: SigningKey): Promise<string> {
  const signingKeys = await readPrivateKey({ armoredKey: privateKey });
  return sign({ message: await createCleartextMessage({ text }), signingKeys });
}

export function version(text: string): Version {
  const found = parseVersion(text);
  if (!found) throw new Error(text);
  return found;
}

/** A program that says it is that version, as `rclone version` does. */
export function pretender(says: string): Buffer {
  return Buffer.from(`#!/bin/sh\necho "rclone ${says}"\n`);
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

export class ReleaseMirror {
  readonly asked: string[] = [];
  isSilentProxy = false;
  readonly #sockets = new Set<Socket>();
  readonly #answers = new Map<string, Buffer | Answer>();
  readonly #key: SigningKey;
  readonly #server = createServer((request, response) => this.#answer(request, response));

  private constructor(key: SigningKey) {
    this.#key = key;
  }

  static async start(key: SigningKey): Promise<ReleaseMirror> {
    const mirror = new ReleaseMirror(key);
    // As a proxy: whatever host is asked for, it leads to the mirror itself.
    mirror.#server.on('connect', (request: IncomingMessage, socket: Socket) => {
      mirror.asked.push(`CONNECT ${request.url ?? ''}`);
      if (mirror.isSilentProxy) return;
      const { port } = mirror.#server.address() as AddressInfo;
      const upstream = connect(port, '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        socket.pipe(upstream).pipe(socket);
      });
      for (const one of [socket, upstream]) one.on('error', () => undefined);
      socket.on('close', () => upstream.destroy());
    });
    mirror.#server.on('connection', (socket) => mirror.#sockets.add(socket));
    mirror.#server.listen(0, '127.0.0.1');
    await once(mirror.#server, 'listening');
    return mirror;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** A whole release with that program; it is the newest from now on. */
  async publish(name: string, program: Buffer = pretender(name)): Promise<{ archive: Buffer; sums: string }> {
    const build = buildName(version(name));
    const archive = zipArchive(`${build}/rclone`, program);
    const sum = createHash('sha256').update(archive).digest('hex');
    const sums = await signedText(
      `${'0'.repeat(64)}  rclone-${name}-osx.zip\n${sum}  ${build}.zip\n`,
      this.#key,
    );
    this.put(`${name}/SHA256SUMS`, sums);
    this.put(`${name}/${build}.zip`, archive);
    this.put('version.txt', `rclone ${name}\n`);
    return { archive, sums };
  }

  put(path: string, content: Buffer | string | Answer): void {
    this.#answers.set(`/${path}`, typeof content === 'string' ? Buffer.from(content) : content);
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    // A proxy is asked by the whole address.
    const path = (request.url ?? '').replace(/^http:\/\/[^/]+/, '');
    this.asked.push(request.url ?? '');
    const answer = this.#answers.get(path);
    if (typeof answer === 'function') return answer(request, response);
    if (answer === undefined) response.statusCode = 404;
    response.end(answer);
  }
}
