import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import type { Refusal } from './front-answer.ts';
import type { FrontState, FrontUser } from './front-state.ts';
import { Throttle } from './front-throttle.ts';

const CHALLENGE: Refusal = { status: 401, text: 'A user name and a password are needed.', headers: { 'www-authenticate': 'Basic realm="Mountkeeper", charset="UTF-8"' } };
const TOO_OFTEN: Refusal = { status: 429, text: 'Too many wrong passwords came from this address; try again later.', headers: { 'retry-after': '30' } };
const FOREIGN_NAME: Refusal = { status: 421, text: 'This server does not answer to that name. Use its address, or add the name to web.hostnames.' };
const MAX_KNOWN = 1_000;

/** Tells who may come in. */
export class Door {
  readonly #key = randomBytes(32);
  readonly #throttle = new Throttle();
  /** Right passwords, by the address that gave them: guessing from there does not slow their owners down. */
  readonly #known = new Map<string, string>();
  #right: readonly Buffer[] = [];
  #isOpen = false;
  #hostnames: ReadonlySet<string> = new Set();

  admitOnly({ users, isOpen, hostnames }: FrontState): void {
    this.#right = users.map((user) => this.#digest(user));
    const right = new Set(this.#right.map((digest) => digest.toString('base64')));
    for (const [id, digest] of this.#known) if (!right.has(digest)) this.#known.delete(id);
    this.#isOpen = isOpen;
    const own = hostname().toLowerCase();
    this.#hostnames = new Set(['localhost', own, `${own}.local`, ...hostnames.map((name) => name.toLowerCase())]);
  }

  /** Undefined: come in. */
  async refusal(request: IncomingMessage): Promise<Refusal | undefined> {
    // Without a password a page in somebody's browser must not get in by a name that it makes lead here.
    if (this.#isOpen) return this.#isOwnName(request.headers.host) ? undefined : FOREIGN_NAME;
    const credentials = parseBasic(request.headers.authorization);
    if (!credentials) return CHALLENGE;
    const address = request.socket.remoteAddress ?? '';
    const digest = this.#digest(credentials);
    const spelled = digest.toString('base64');
    const id = `${address} ${spelled}`;
    if (this.#known.has(id)) return undefined;
    if (!(await this.#throttle.enter(address))) return TOO_OFTEN;
    if (!this.#isRight(digest)) {
      this.#throttle.failed(address);
      return CHALLENGE;
    }
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    this.#known.set(id, spelled);
    return undefined;
  }

  /** Every one is compared, so that the time taken tells nothing. */
  #isRight(digest: Buffer): boolean {
    return this.#right.reduce((found, right) => timingSafeEqual(right, digest) || found, false);
  }

  #digest({ name, password }: FrontUser): Buffer {
    return createHmac('sha256', this.#key).update(`${name.normalize('NFC')}\0${password.normalize('NFC')}`).digest();
  }

  #isOwnName(host: string | undefined): boolean {
    if (host === undefined) return false;
    const name = host.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '').toLowerCase();
    return isIP(name) !== 0 || this.#hostnames.has(name);
  }
}

export function parseBasic(header: string | undefined): FrontUser | undefined {
  const encoded = /^Basic +([A-Za-z0-9+/=_-]+) *$/i.exec(header ?? '')?.[1];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon < 0 ? undefined : { name: text.slice(0, colon), password: text.slice(colon + 1) };
}
