import type {
  Clock,
  Hooks,
  LiveShare,
  Logger,
  NotificationEvent,
  Prober,
  RemoteFailure,
  ShareStatus,
} from 'mountkeeper';
import { ReturnWatch } from './return-watch.ts';
import type { ReturnWatchOptions } from './return-watch.ts';
import { evidenceOf, verdictOfChange, weigh } from './evidence.ts';
import type { Evidence, Verdict } from './evidence.ts';
import { backEvent, offlineEvent } from './events.ts';
import { ConnectionWatch } from './outage.ts';
import type { Moment, Outage } from './outage.ts';
import type { Outages } from './outage-file.ts';

/** Interval of probes of one share while no share of an offline connection is mounted. */
const PROBE_EVERY_MS = 10_000;
/** The same when something is listening at its address: its service may be starting. */
const PROBE_OPEN_EVERY_MS = 3_000;
const PROBE_TIMEOUT_MS = 10_000;
/** A failed check is repeated at once, with this shorter time limit. */
const CONFIRM_TIMEOUT_MS = 2_000;
const STUCK_MS = 2_000;
const MINUTE_MS = 60_000;

export interface WatcherOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly shares: () => readonly LiveShare[];
  readonly status: (shareName: string) => ShareStatus | undefined;
  readonly prober: () => Prober | undefined;
  readonly dial: ReturnWatchOptions['dial'];
  /** 0: no notifications. */
  readonly offlineMinutes: () => number;
  /** Resolves once the event is accepted. */
  readonly notify: (event: NotificationEvent) => Promise<void>;
  readonly onBack: (connection: string) => void;
  /** Something listens again where nothing did, and a share of it has failed. */
  readonly onOpen: (connection: string) => void;
  /** The verdict about a connection's NAS is another one. */
  readonly onChange: (change: { readonly connection: string; readonly isOffline: boolean }) => void;
  readonly save: (outages: Outages) => void;
  readonly signal: AbortSignal;
}

/** Watches every connection by the evidence of its shares. */
export class NasWatcher {
  readonly #options: WatcherOptions;
  readonly #watches = new Map<string, ConnectionWatch>();
  readonly #probes = new Map<string, Evidence>();
  readonly #probedAt = new Map<string, number>();
  /** When something began to listen there again. */
  readonly #openedAt = new Map<string, number>();
  readonly #probingSince = new Map<string, number>();
  readonly #telling = new Set<string>();
  readonly #confirming = new Set<string>();
  readonly #returnWatch: ReturnWatch;
  #former: Outages;
  #saved = '';

  constructor(options: WatcherOptions, former: Outages) {
    this.#options = options;
    this.#former = former;
    this.#saved = JSON.stringify(former);
    this.#returnWatch = new ReturnWatch(options);
  }

  /** Connections whose NAS is offline, with the time since when, and for how many milliseconds. */
  get offline(): readonly {
    readonly connection: string;
    readonly since: number;
    readonly lastedMs: number;
  }[] {
    const { clock } = this.#options;
    const at = { now: clock.now(), monotonicMs: clock.monotonic() };
    return [...this.#watches].flatMap(([connection, watch]) =>
      watch.isOffline && watch.outage
        ? [{ connection, since: watch.outage.since, lastedMs: watch.lastedMs(at) }]
        : [],
    );
  }

  /**
   * True for a share whose probe waits for a NAS that was silent when it began, and may not notice its
   * return.
   */
  isStuck(share: string): boolean {
    const since = this.#probingSince.get(share);
    const live = this.#options.shares().find(({ spec }) => spec.share.name === share);
    const openedAt = this.#openedAt.get(live?.spec.connection.name ?? '') ?? Infinity;
    return since !== undefined && since < openedAt && this.#options.clock.monotonic() - since >= STUCK_MS;
  }

  healthChanged(change: Hooks['shareHealthChanged']['args'][0]): void {
    if (change.to === 'probing') this.#probingSince.set(change.share, this.#options.clock.monotonic());
    else this.#probingSince.delete(change.share);
    const live = this.#options.shares().find(({ spec }) => spec.share.name === change.share);
    const verdict = verdictOfChange(change, live?.remoteAnswers);
    if (verdict) this.#probes.set(change.share, { verdict, atMs: this.#options.clock.monotonic() });
    if (verdict === 'answers') this.look();
  }

  /** One round over all connections; waits for nothing. */
  look(): void {
    const { clock, shares } = this.#options;
    const at = { now: clock.now(), monotonicMs: clock.monotonic() };
    const live = shares();
    const byConnection = grouped(live);
    for (const [connection, own] of byConnection) this.#judge(connection, own, at);
    for (const gone of [...this.#watches.keys()].filter((connection) => !byConnection.has(connection))) {
      this.#watches.delete(gone);
      this.#returnWatch.forget(gone);
    }
    const known = new Set(live.map(({ spec }) => spec.share.name));
    for (const gone of [...this.#probes.keys()].filter((share) => !known.has(share)))
      this.#probes.delete(gone);
    this.#saveWhenChanged();
  }

  #judge(connection: string, shares: readonly LiveShare[], at: Moment): void {
    const watch = this.#watches.get(connection) ?? new ConnectionWatch(this.#former[connection]);
    this.#watches.set(connection, watch);
    if (shares.some(({ spec }) => (this.#options.status(spec.share.name)?.speed ?? 0) > 0)) watch.moved(at);
    const evidence = shares.flatMap((share) =>
      evidenceOf(share, this.#probes.get(share.spec.share.name), at.monotonicMs),
    );
    const weighed = weigh(evidence, at.monotonicMs);
    const verdict = weighed === 'unclear' ? this.#heardAtItsDoor(connection) : weighed;
    const { began, ended } = watch.judge(verdict, at);
    if (verdict === 'silent' && !watch.isOffline && !watch.isConfirmed)
      void this.#confirm(connection, shares, watch);
    if (began) this.#gone(connection, shares);
    if (ended) this.#back(connection, ended);
    this.#callBack(connection, { shares, verdict: weighed, at });
    if (watch.isOffline) this.#tellWhenDue(connection, watch, at);
  }

  /** Silent unless something accepts at its address; unknown until it has been dialled. */
  #heardAtItsDoor(connection: string): Verdict {
    const isSilent = this.#returnWatch.isDialled(connection) && !this.#returnWatch.isOpen(connection);
    return isSilent ? 'silent' : 'unknown';
  }

  /** Dials a silent NAS to notice its return, and one of which that is unclear. */
  #callBack(
    connection: string,
    {
      shares,
      verdict,
      at,
    }: { readonly shares: readonly LiveShare[]; readonly verdict: Verdict; readonly at: Moment },
  ): void {
    const isOffline = this.#watches.get(connection)?.isOffline === true;
    if (verdict !== 'silent' && verdict !== 'unclear' && !isOffline)
      return this.#returnWatch.forget(connection);
    const share = shares.find(({ health }) => health === 'failed') ?? shares[0];
    if (!share) return;
    void this.#returnWatch.look(share.spec.connection, verdict === 'unclear').then((hasOpened) => {
      if (!hasOpened) return;
      this.#openedAt.set(connection, this.#options.clock.monotonic());
      if (share.health !== 'failed') return this.#probe(connection, share);
      // Not ours first: its own after that would keep its users out for another second.
      this.#probedAt.set(connection, this.#options.clock.monotonic());
      this.#options.onOpen(connection);
    });
    const isAnyMounted = shares.some(({ mount }) => mount !== undefined);
    if (isOffline && !isAnyMounted && this.#isProbeDue(connection, at.monotonicMs))
      this.#probe(connection, share);
  }

  #isProbeDue(connection: string, nowMs: number): boolean {
    const everyMs = this.#returnWatch.isOpen(connection) ? PROBE_OPEN_EVERY_MS : PROBE_EVERY_MS;
    return nowMs - (this.#probedAt.get(connection) ?? -Infinity) >= everyMs;
  }

  /** One failed check is not an outage: the mount whose check failed is asked again. */
  async #confirm(connection: string, shares: readonly LiveShare[], watch: ConnectionWatch): Promise<void> {
    const share = shares.find(({ mount, remoteAnswers }) => mount !== undefined && remoteAnswers === false);
    if (!share?.mount || this.#confirming.has(connection)) return;
    const { clock, signal } = this.#options;
    const end = new AbortController();
    this.#confirming.add(connection);
    try {
      await share.mount.checkRemote(
        clock.deadline(CONFIRM_TIMEOUT_MS, AbortSignal.any([signal, end.signal])),
      );
      this.#probes.set(share.spec.share.name, { verdict: 'answers', atMs: clock.monotonic() });
    } catch (error) {
      if ((error as RemoteFailure).remote === 'answers')
        this.#probes.set(share.spec.share.name, { verdict: 'answers', atMs: clock.monotonic() });
      else if ((error as RemoteFailure).remote === 'silent' || this.#heardAtItsDoor(connection) === 'silent')
        watch.confirm();
    } finally {
      end.abort();
      this.#confirming.delete(connection);
    }
    if (!signal.aborted) this.look();
  }

  #gone(connection: string, shares: readonly LiveShare[]): void {
    const { log, onChange } = this.#options;
    this.#openedAt.delete(connection);
    log.warn({ connection, shares: shares.map(({ spec }) => spec.share.name) }, 'NAS offline');
    onChange({ connection, isOffline: true });
  }

  #back(connection: string, outage: Outage & { readonly lastedMs: number }): void {
    const { log, notify, onBack, onChange } = this.#options;
    log.info({ connection, seconds: Math.round(outage.lastedMs / 1000) }, 'NAS is back');
    onChange({ connection, isOffline: false });
    onBack(connection);
    if (outage.isTold)
      notify(backEvent(connection, outage, outage.lastedMs)).catch((error: unknown) =>
        log.error({ connection, err: error }, 'return of the NAS not told'),
      );
  }

  #tellWhenDue(connection: string, watch: ConnectionWatch, at: Moment): void {
    const { log, notify, offlineMinutes } = this.#options;
    const { outage } = watch;
    const minutes = offlineMinutes();
    if (
      !outage ||
      outage.isTold ||
      minutes <= 0 ||
      watch.lastedMs(at) < minutes * MINUTE_MS ||
      this.#telling.has(connection)
    )
      return;
    this.#telling.add(connection);
    void notify(offlineEvent(connection, outage, watch.lastedMs(at)))
      .then(
        () => watch.told(),
        (error: unknown) => log.error({ connection, err: error }, 'NAS offline not told, trying again'),
      )
      .finally(() => this.#telling.delete(connection));
  }

  /**
   * Failed shares are probed automatically, but up to a minute apart: too rarely to notice a return at
   * once.
   */
  #probe(connection: string, { spec }: LiveShare): void {
    const { clock, onBack, prober, signal } = this.#options;
    const service = prober();
    if (!service) return;
    this.#probedAt.set(connection, clock.monotonic());
    const end = new AbortController();
    void service
      .probe(spec, clock.deadline(PROBE_TIMEOUT_MS, AbortSignal.any([signal, end.signal])))
      .then((result) => {
        end.abort();
        const answers = result.ok || result.remote === 'answers';
        if (signal.aborted || !answers) return;
        this.#probes.set(spec.share.name, { verdict: 'answers', atMs: clock.monotonic() });
        // Silence that was too short for an outage has made shares fail, too.
        if (this.#watches.get(connection)?.isOffline === false) onBack(connection);
        this.look();
      });
  }

  #saveWhenChanged(): void {
    const outages = {
      ...this.#former,
      ...Object.fromEntries([...this.#watches].map(([connection, watch]) => [connection, watch.outage])),
    };
    const known = Object.fromEntries(
      Object.entries(outages).filter(
        ([connection, outage]) => outage !== undefined && this.#watches.has(connection),
      ),
    ) as Outages;
    const text = JSON.stringify(known);
    if (this.#watches.size === 0 || text === this.#saved) return;
    this.#saved = text;
    this.#former = known;
    this.#options.save(known);
  }
}

function grouped(shares: readonly LiveShare[]): ReadonlyMap<string, readonly LiveShare[]> {
  const groups = new Map<string, LiveShare[]>();
  for (const share of shares) {
    const group = groups.get(share.spec.connection.name);
    if (group) group.push(share);
    else groups.set(share.spec.connection.name, [share]);
  }
  return groups;
}
