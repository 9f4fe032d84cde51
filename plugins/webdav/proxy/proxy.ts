import type { Server } from 'node:http';
import { basename, join } from 'node:path';
import { endsWithin, SecureServer } from 'mountkeeper/sdk';
import { ClearUp } from './writes/clear-up.ts';
import { Authenticator } from './authenticator.ts';
import { clock } from './clock.ts';
import { LockBook } from './lock-book.ts';
import { Upstream } from './upstream.ts';
import type { Away } from './upstream.ts';
import { Visitors } from './visitors.ts';
import type { UserName } from './visitors.ts';
import { Journal } from './writes/journal.ts';
import { createProxy } from './server.ts';
import type { ProxyServerOptions } from './server.ts';
import { SmallBodies } from './writes/small-bodies.ts';
import { prepareSpool } from './writes/spool.ts';
import { OWN_HEADER } from './state.ts';
import type { ProxyReport, ProxyState } from './state.ts';

/** How long the daemon waits for locks. */
const LOCKS_MS = 500;

/** The last state from the daemon, and everything derived from it. */
export class WebdavProxy {
  readonly upstreams = new Map<string, Upstream>();
  readonly authenticator = new Authenticator();
  readonly visitors = new Visitors();
  readonly locks = new LockBook();
  readonly journal: Journal;
  readonly clearUp: ClearUp;
  readonly #small = new SmallBodies();
  #state: ProxyState | undefined;
  /** Undefined where plain HTTP is spoken. */
  #secureServer: SecureServer | undefined;
  #fingerprint: string | undefined;
  /** Names of files in the spool that notes speak of; undefined where not all notes could be read. */
  #bodies: ReadonlySet<string> | undefined;
  readonly #cleared = new Set<string>();
  readonly #log: (sentence: string) => void;

  constructor(folder: string, log: (sentence: string) => void) {
    this.#log = log;
    this.journal = new Journal(join(folder, 'journal'));
    this.clearUp = new ClearUp({ journal: this.journal, spool: () => this.#spool().folder, log });
  }

  async open(): Promise<void> {
    const left = await this.journal.open();
    for (const upload of left) await this.clearUp.takeUp(upload);
    this.#bodies = this.journal.hasUnread
      ? undefined
      : new Set(left.flatMap(({ body }) => (body === undefined ? [] : basename(body))));
  }

  get report(): ProxyReport {
    const shares = [...this.upstreams.values()].flatMap(({ attached }) => attached?.share ?? []);
    return { shares, ...(this.#fingerprint !== undefined && { fingerprint: this.#fingerprint }) };
  }

  /** Resolves once everything that is not in the new state has been let go of. */
  async take(told: ProxyState): Promise<void> {
    const state = { ...told, systemUsers: told.systemUsers ?? this.#formerMembers(told.systemGroup) };
    // First of all: nobody goes on who may not.
    this.authenticator.admitOnly(state);
    const ended = this.visitors.admitOnly(state);
    this.#show(state);
    // Removes only what a former proxy left, never what is being received.
    if (!this.#cleared.has(state.spool)) await prepareSpool(state.spool, this.#bodies);
    this.#cleared.add(state.spool);
    this.#state = state;
    const wanted = new Map(state.shares.map((share) => [share.name, share]));
    for (const name of [...wanted.keys(), ...(state.absent ?? [])])
      if (!this.upstreams.has(name)) this.upstreams.set(name, new Upstream(name));
    await Promise.all(
      [...this.upstreams.values()].map(async (upstream) => {
        const share = wanted.get(upstream.name);
        if (!share) return upstream.detach(awayOf(upstream.name, state));
        const attaching = upstream.attach(share);
        if (!upstream.isFrozen) this.clearUp.run(upstream);
        await attaching;
      }),
    );
    const mayWrite = (user: UserName, share: string): boolean =>
      this.visitors.entrance(user, share) === 'write';
    // Locks that are still in use are given up afterwards: the daemon does not wait for an upload.
    await endsWithin(clock, LOCKS_MS, this.locks.keepOnly(mayWrite, ended));
  }

  /** Clients that are connected go on with the one they were shown. */
  #show({ certificate }: ProxyState): void {
    if (!this.#secureServer || !certificate || certificate.fingerprint === this.#fingerprint) return;
    this.#secureServer.setCertificate(certificate);
    this.#fingerprint = certificate.fingerprint;
  }

  /** Without a state the server refuses everybody; with TLS and without a certificate nobody can connect. */
  createServer({ limits, isSecure = false }: ProxyServerOptions = {}): Server {
    const { journal, clearUp } = this;
    const put = { journal, clearUp, spool: () => this.#spool(), small: this.#small };
    const server = createProxy(
      {
        authenticator: this.authenticator,
        visitors: this.visitors,
        upstreams: this.upstreams,
        isOwn: ({ headers }) =>
          headers[OWN_HEADER] !== undefined && headers[OWN_HEADER] === this.#state?.mark,
        log: this.#log,
        put: { ...put, locks: this.locks },
      },
      { limits, isSecure },
    );
    if (server instanceof SecureServer) this.#secureServer = server;
    return server;
  }

  /** Those who were let in as members of this very group. */
  #formerMembers(group: string | undefined): readonly string[] {
    const former = this.#state;
    return group !== undefined && former?.systemGroup === group ? (former.systemUsers ?? []) : [];
  }

  #spool(): { folder: string; minFreeBytes: number } {
    if (!this.#state) throw new Error('nothing has been said yet');
    return { folder: this.#state.spool, minFreeBytes: this.#state.minFreeBytes };
  }
}

function awayOf(share: string, { returning, absent }: ProxyState): Away {
  if (returning.includes(share)) return 'returning';
  return absent?.includes(share) === true ? 'absent' : 'gone';
}
