/**
 * The certificates of the servers that speak TLS. Each follows its files: what is whole and belongs together is
 * taken, anything else leaves the former one in use and is told.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Notice } from '../../contract/notifications.ts';
import type { Clock, Logger, Release } from '../../contract/platform.ts';
import type {
  CertificateOptions,
  CertificatesService,
  KeptCertificate,
  KeyPair,
  TlsConfig,
} from '../../contract/http.ts';
import { watchFiles } from '../files/watcher.ts';
import { createSerialQueue } from '../serial-queue.ts';
import { readPair } from './pair.ts';
import type { PairFiles } from './pair.ts';
import { ensureSelfMade, selfMadeFiles } from './self-made.ts';

const DAY_MS = 86_400_000;
/** A certificate that ends within this time is warned of: whoever renews it should have done so by now. */
const WARN_MS = 14 * DAY_MS;
/** How often the time that is left is looked at: a machine without a clock of its own learns the time late. */
const LOOK_MS = 3_600_000;
/** While something is wrong: a mode that is put right, for one, changes no content. */
const LOOK_AGAIN_MS = 5_000;

export interface CertificatesParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly stateDir: string;
}

export function createCertificates(parts: CertificatesParts): CertificatesService {
  const kept = new Set<Certificate>();
  // All servers with a self-made certificate have the same one.
  const queue = createSerialQueue();
  const names = new Set<string>();
  const make = (): Promise<unknown> =>
    queue.run(async () => {
      const files = selfMadeFiles(parts.stateDir);
      const isNew = await ensureSelfMade({ files, names: [...names], now: parts.clock.now() });
      if (isNew) parts.log.info({ certificate: files.certificate }, 'certificate made');
    });
  return {
    async keep(tls, options) {
      if (tls.self_made) for (const name of options.names) names.add(name);
      const one = new Certificate({ ...parts, tls, options, make, onClose: () => kept.delete(one) });
      kept.add(one);
      await one.open();
      return one;
    },
    list: () =>
      [...kept].flatMap(({ label, pair }) =>
        pair ? [{ label, fingerprint: pair.fingerprint, endsAt: pair.endsAt }] : [],
      ),
  };
}

interface CertificateParts extends CertificatesParts {
  readonly tls: TlsConfig;
  readonly options: CertificateOptions;
  /** Makes the certificate of the state folder unless a good one is there. */
  readonly make: () => Promise<unknown>;
  readonly onClose: () => void;
}

class Certificate implements KeptCertificate {
  readonly #parts: CertificateParts;
  #pair: KeyPair | undefined;
  #problem: string | undefined;
  #stopWatching: Release | undefined;
  #cancelLook: () => void = () => undefined;
  #isClosed = false;

  constructor(parts: CertificateParts) {
    this.#parts = parts;
  }

  get label(): string {
    return this.#parts.options.label;
  }

  get pair(): KeyPair | undefined {
    return this.#pair;
  }

  get problem(): string | undefined {
    return this.#problem;
  }

  get notices(): readonly Notice[] {
    const { label } = this;
    const still = this.#pair ? 'the former certificate stays in use' : 'nobody can connect';
    const problem: readonly Notice[] =
      this.#problem === undefined
        ? []
        : [{ level: this.#pair ? 'warning' : 'error', message: `${label}: ${this.#problem}; ${still}` }];
    const left = (this.#pair?.endsAt ?? Infinity) - this.#parts.clock.now();
    if (left > WARN_MS) return problem;
    const end = new Date(this.#pair?.endsAt ?? 0).toISOString().slice(0, 10);
    const message =
      left > 0
        ? `${label}: the certificate ends on ${end}; put a new one in its place`
        : `${label}: the certificate ended on ${end}, so clients refuse it; put a new one in its place`;
    return [...problem, { level: 'warning', message }];
  }

  async open(): Promise<void> {
    const { clock, log } = this.#parts;
    await this.#read();
    const { certificate, key } = this.#files();
    this.#stopWatching = await watchFiles({
      paths: [certificate, key],
      clock,
      log,
      onChange: () => void this.#readAgain(),
    });
    this.#lookLater();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelLook();
    this.#parts.onClose();
    await this.#stopWatching?.();
  }

  /** Time passes: a self-made certificate is made anew, and the end of another one is warned of. */
  #lookLater(): void {
    this.#cancelLook();
    if (this.#isClosed) return;
    const ms = this.#problem === undefined ? LOOK_MS : LOOK_AGAIN_MS;
    this.#cancelLook = this.#parts.clock.after(ms, () => void this.#readAgain());
  }

  async #readAgain(): Promise<void> {
    await this.#read();
    this.#lookLater();
    if (!this.#isClosed) this.#parts.options.onChange();
  }

  async #read(): Promise<void> {
    const { log, make, tls } = this.#parts;
    const { label } = this;
    try {
      // The one that is there serves until another can be made.
      const failure = tls.self_made
        ? await make().then(
            () => undefined,
            (error: unknown) => error,
          )
        : undefined;
      this.#take(readPair(this.#files()));
      if (failure !== undefined) throw failure;
      this.#problem = undefined;
    } catch (error) {
      const reason = (error as Error).message;
      if (reason !== this.#problem) log.error({ server: label, reason }, 'certificate not taken');
      this.#problem = reason;
    }
  }

  #take(pair: KeyPair): void {
    if (isDeepStrictEqual(pair, this.#pair)) return;
    this.#pair = pair;
    const ends = new Date(pair.endsAt).toISOString();
    this.#parts.log.info({ server: this.label, fingerprint: pair.fingerprint, ends }, 'certificate in use');
  }

  #files(): PairFiles {
    const { stateDir, tls } = this.#parts;
    const { certificate = '', key = '' } = tls;
    return tls.self_made ? selfMadeFiles(stateDir) : { certificate, key };
  }
}
