import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import {
  clientAddress,
  CredentialDigest,
  isInClear,
  parseBasicCredentials,
  pause,
  RefusedSignInCounts,
  Throttle,
  trustedProxies,
} from 'mountkeeper/sdk';
import type { BasicCredentials } from 'mountkeeper/sdk';
import type { Refusal } from './answer.ts';
import { clock } from './clock.ts';
import type { ProxyState } from './state.ts';
import { ANSWER_COUNTS_MS, SystemUsers } from './system-users.ts';

const CHALLENGE: Refusal = {
  status: 401,
  text: 'A user name and a password are needed.',
  headers: { 'www-authenticate': 'Basic realm="Mountkeeper", charset="UTF-8"' },
};
const TOO_OFTEN: Refusal = {
  status: 429,
  text: 'Too many wrong passwords came from this address; try again later.',
  headers: { 'retry-after': '30' },
};
const IN_CLEAR: Refusal = {
  status: 403,
  text:
    'Over plain HTTP everybody on the way could read a password, so this server takes none from other machines. Let ' +
    'it speak TLS ([webdav.tls] in its configuration), or allow this by webdav.plain_http = true.',
};
const FOREIGN_NAME: Refusal = {
  status: 421,
  text: 'This server does not answer to that name. Use its address, or add the name to web.hostnames.',
};

/**
 * With users of the machine each refusal is as late as PAM's own, which takes 1 to 3 s: otherwise the time would tell
 * who they are, and that a locked one's password is right.
 */
const REFUSED_AFTER_MS = 3_500;

/** Who is let in, by the name that was logged in with; or why nobody is. */
export type Admission =
  { readonly user: string | undefined; readonly address: string } | { readonly refusal: Refusal };

/** Decides which requests are accepted. */
export class Authenticator {
  /** Those with a password that was wrong, or not looked at since there had been too many. */
  readonly refused = new RefusedSignInCounts();
  readonly system = new SystemUsers(clock);
  readonly #throttle = new Throttle({ clock });
  /** The users as they were told last: another password makes all digests mean nothing. */
  #users = '';
  #digest = new CredentialDigest();
  #right: readonly Buffer[] = [];
  #names: ReadonlySet<string> = new Set();
  #hasSystemUsers = false;
  #isOpen = false;
  #refusesInClear = true;
  #hostnames: ReadonlySet<string> = new Set();
  #proxies = trustedProxies([]);

  admitOnly({
    users,
    systemUsers = [],
    isOpen,
    hostnames,
    trustedProxies: proxies,
    refusesInClear,
  }: ProxyState): void {
    this.#admit(users, systemUsers);
    this.#isOpen = isOpen;
    this.#refusesInClear = refusesInClear === true;
    const own = hostname().toLowerCase();
    this.#hostnames = new Set([
      'localhost',
      own,
      `${own}.local`,
      ...hostnames.map((name) => name.toLowerCase()),
    ]);
    this.#proxies = trustedProxies(proxies);
  }

  #admit(users: ProxyState['users'], systemUsers: readonly string[]): void {
    const told = JSON.stringify([users, systemUsers]);
    if (told === this.#users) return;
    this.#users = told;
    this.#digest = new CredentialDigest();
    this.#right = users.map(({ name, password }) => this.#digest.of({ username: name, password }));
    // Who stands in the document, too, has the password that stands there, and no second one.
    const own = new Set(users.map(({ name }) => name.normalize('NFC')));
    const members = systemUsers.filter((name) => !own.has(name.normalize('NFC')));
    this.system.admitOnly(members, own);
    this.#hasSystemUsers = systemUsers.length > 0;
    this.#names = new Set([...users.map(({ name }) => name), ...systemUsers]);
  }

  isTrustedProxy(address: string): boolean {
    return this.#proxies.has(address);
  }

  /** `gone` aborts when the client leaves. `isOwn`: the daemon asks. */
  async admit(request: IncomingMessage, gone: AbortSignal, isOwn = false): Promise<Admission> {
    // Without passwords, a web page must not get in through a host name that its own DNS points here.
    const address = clientAddress(request.socket.remoteAddress ?? '', request.headers, this.#proxies);
    if (this.#isOpen)
      return this.#isOwnName(request.headers.host) ? { user: undefined, address } : { refusal: FOREIGN_NAME };
    // Not looked at: whoever was told that it is right could read it, too.
    if (this.#refusesInClear && !isOwn && isInClear(request, this.#proxies)) return { refusal: IN_CLEAR };
    const credentials = parseBasicCredentials(request.headers.authorization);
    return credentials ? this.#examine(credentials, { address, gone, isOwn }) : { refusal: CHALLENGE };
  }

  async #examine(
    credentials: BasicCredentials,
    {
      address,
      gone,
      isOwn,
    }: { readonly address: string; readonly gone: AbortSignal; readonly isOwn: boolean },
  ): Promise<Admission> {
    const id = this.#digest.of(credentials).toString('base64');
    // The machine's word may be another one later.
    const wrongForMs = this.system.asksAbout(credentials.username) ? ANSWER_COUNTS_MS : undefined;
    const verify = (): Promise<boolean> => this.#verify(credentials, id, gone);
    const verdict = await this.#throttle.examine({ address, id, signal: gone, verify, wrongForMs });
    if (verdict === 'right') return { user: credentials.username, address };
    // Before it was told who there is, nobody was wrong.
    if (!isOwn && this.#users !== '') this.#count(credentials.username, address);
    return { refusal: verdict === 'wrong' ? CHALLENGE : TOO_OFTEN };
  }

  async #verify(credentials: BasicCredentials, id: string, gone: AbortSignal): Promise<boolean> {
    if (this.#isRight(credentials)) return true;
    if (!this.#hasSystemUsers) return false;
    const late = clock.monotonic() + REFUSED_AFTER_MS;
    if (await this.system.isRight(credentials, id)) return true;
    await pause(clock, Math.max(0, late - clock.monotonic()), gone);
    return false;
  }

  #count(user: string, address: string): void {
    this.refused.add({ address, user, isNobody: !this.#names.has(user), at: clock.now() });
  }

  /** Compares with every user, so that the time taken reveals nothing. */
  #isRight(credentials: BasicCredentials): boolean {
    const digest = this.#digest.of(credentials);
    return this.#right.reduce((found, right) => timingSafeEqual(right, digest) || found, false);
  }

  #isOwnName(host: string | undefined): boolean {
    if (host === undefined) return false;
    const name = host
      .replace(/:\d+$/, '')
      .replace(/^\[(.*)\]$/, '$1')
      .replace(/\.$/, '')
      .toLowerCase();
    return isIP(name) !== 0 || this.#hostnames.has(name);
  }
}
