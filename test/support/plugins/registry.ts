/**
 * A registry of npm packages on loopback, for npm itself: packuments, tarballs and search. What is published is
 * packed by npm from a folder.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { scaffold } from '../../../core/cli/plugin/scaffold.ts';
import type { Scratch } from '../platform/scratch-folder.ts';

interface Published {
  readonly manifest: { readonly name: string; readonly version: string };
  readonly dist: Record<string, unknown>;
  readonly tarball: Buffer;
}

export interface PublishOptions {
  /** The tarball is not the one whose integrity the registry names. */
  readonly isForged?: boolean;
  readonly hasProvenance?: boolean;
}

export class PackageRegistry {
  readonly #scratch: Scratch;
  readonly #server: Server;
  readonly #packages = new Map<string, Published[]>();
  #number = 0;
  /** Called for each tarball that is asked for; one that never resolves keeps npm waiting. */
  onTarball: () => Promise<void> = () => Promise.resolve();

  private constructor(scratch: Scratch) {
    this.#scratch = scratch;
    this.#server = createServer((request, response) => {
      void this.#answer(request, response).catch(() => response.writeHead(500).end());
    });
  }

  static async create(scratch: Scratch): Promise<PackageRegistry> {
    const registry = new PackageRegistry(scratch);
    registry.#server.listen(0, '127.0.0.1');
    await once(registry.#server, 'listening');
    scratch.defer(() => {
      registry.#server.closeAllConnections();
      registry.#server.close();
    });
    return registry;
  }

  get url(): string {
    return `http://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  /** npm's configuration for it, with a home and a cache of its own. */
  get env(): Record<string, string> {
    const home = this.#scratch.path('npm-home');
    return {
      HOME: home,
      npm_config_registry: `${this.url}/`,
      npm_config_cache: path.join(home, 'cache'),
      npm_config_fetch_retries: '0',
      // What a careless administrator may have set.
      npm_config_ignore_scripts: 'false',
    };
  }

  /** A scaffolded plugin in a folder of its own, with files and keys of package.json put over it. */
  async folder(
    name: string,
    manifest: Record<string, unknown> = {},
    files: Record<string, string> = {},
  ): Promise<string> {
    this.#number += 1;
    const folder = this.#scratch.path('sources', String(this.#number), name);
    await mkdir(folder, { recursive: true });
    const all: Record<string, string> = { ...scaffold(name, '0.1.0'), ...files };
    const json = JSON.parse(all['package.json'] ?? '') as object;
    all['package.json'] = JSON.stringify({ ...json, ...manifest });
    for (const [file, content] of Object.entries(all)) await writeFile(path.join(folder, file), content);
    return folder;
  }

  /** The tarball that npm makes of a folder. */
  async pack(folder: string): Promise<string> {
    // What npm packs it keeps in its cache, and would not ask the registry for it.
    const cache = this.#scratch.path('packing');
    const { stdout } = await promisify(execFile)(
      'npm',
      ['pack', '--json', '--ignore-scripts', '--pack-destination', path.dirname(folder), folder],
      { env: { ...process.env, ...this.env, npm_config_cache: cache }, timeout: 60_000 },
    );
    const [packed] = JSON.parse(stdout) as [{ filename: string }];
    return path.join(path.dirname(folder), packed.filename);
  }

  /** The newest version from now on. Resolves with its integrity. */
  async publish(folder: string, { isForged, hasProvenance }: PublishOptions = {}): Promise<string> {
    const manifest = JSON.parse(
      await readFile(path.join(folder, 'package.json'), 'utf8'),
    ) as Published['manifest'];
    return this.#add(manifest, await readFile(await this.pack(folder)), { isForged, hasProvenance });
  }

  #add(
    manifest: Published['manifest'],
    tarball: Buffer,
    { isForged, hasProvenance }: { readonly [K in keyof PublishOptions]: PublishOptions[K] | undefined } = {},
  ): string {
    const promised = isForged === true ? Buffer.from('something else') : tarball;
    const integrity = `sha512-${createHash('sha512').update(promised).digest('base64')}`;
    const { name, version } = manifest;
    const dist = {
      tarball: `${this.url}/-/tarballs/${encodeURIComponent(name)}/${version}.tgz`,
      integrity,
      ...(hasProvenance === true && {
        attestations: {
          url: `${this.url}/-/attestations`,
          provenance: { predicateType: 'https://slsa.dev/provenance/v1' },
        },
      }),
    };
    const former = this.#packages.get(name) ?? [];
    this.#packages.set(name, [...former, { manifest, dist, tarball }]);
    return integrity;
  }

  /** What `npm publish` sends: the manifest of the new version, and its tarball. */
  async #take(request: IncomingMessage): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const sent = JSON.parse(Buffer.concat(pieces).toString()) as {
      readonly versions: Readonly<Record<string, Published['manifest']>>;
      readonly _attachments: Readonly<Record<string, { readonly data: string }>>;
    };
    const [manifest] = Object.values(sent.versions);
    const [attached] = Object.values(sent._attachments);
    if (!manifest || !attached) throw new Error('npm has sent no version');
    this.#add(manifest, Buffer.from(attached.data, 'base64'));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = '/', method } = request;
    const { pathname } = new URL(url, this.url);
    const [, , packageName = '', file = ''] = pathname.slice(1).split('/');
    const json = (body: unknown, status = 200): void =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (method === 'PUT') {
      await this.#take(request);
      return json({ ok: true }, 201);
    }
    if (pathname === '/-/v1/search') return json(this.#found());
    if (pathname.startsWith('/-/tarballs/')) {
      await this.onTarball();
      const found = this.#tarball(decodeURIComponent(packageName), file);
      return void response.writeHead(found ? 200 : 404).end(found);
    }
    const versions = this.#packages.get(decodeURIComponent(pathname.slice(1)));
    return versions ? json(packument(versions)) : json({ error: 'not found' }, 404);
  }

  #tarball(name: string, file: string): Buffer | undefined {
    const versions = this.#packages.get(name) ?? [];
    return versions.find(({ manifest }) => `${manifest.version}.tgz` === file)?.tarball;
  }

  /** All packages: what they have to do with the words is left to who asks. */
  #found(): unknown {
    const objects = [...this.#packages.values()].flatMap((versions) => {
      const { manifest } = versions.at(-1) ?? {};
      return manifest ? [{ package: { links: {}, maintainers: [], date: new Date(), ...manifest } }] : [];
    });
    return { objects, total: objects.length, time: new Date() };
  }
}

function packument(versions: readonly Published[]): unknown {
  const { name = '', version: latest } = versions.at(-1)?.manifest ?? {};
  return {
    _id: name,
    name,
    'dist-tags': { latest },
    versions: Object.fromEntries(
      versions.map(({ manifest, dist }) => [manifest.version, { ...manifest, dist }]),
    ),
  };
}
