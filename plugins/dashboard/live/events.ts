/** The recent events of each share: a limited number for each, kept in one small file across restarts. */
import type { Clock, Health, NotificationEvent, ShareStatus, StatusRecord } from 'mountkeeper';

export type EventKind =
  'healthy' | 'failed' | 'waiting' | 'saved' | 'refused' | 'offline' | 'online' | 'discarded' | 'replaced';

export interface ShareEvent {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly kind: EventKind;
  /** Why it failed, or the former rclone ended; of what was discarded, which file, and where it is kept. */
  readonly reason?: string;
  /** Number of files that wait or are refused. */
  readonly files?: number;
}

const MOST_EVENTS = 100;
/** Shares that left the configuration and are still remembered. */
const MOST_SHARES = 300;
const LONGEST_REASON = 300;
const KINDS: ReadonlySet<string> = new Set<EventKind>([
  'healthy',
  'failed',
  'waiting',
  'saved',
  'refused',
  'offline',
  'online',
  'discarded',
  'replaced',
]);

interface Known {
  readonly dirtyCount: number;
  readonly erroredFiles: number;
  readonly isOffline: boolean;
}

export class ShareEvents {
  readonly #clock: Clock;
  readonly #onChange: () => void;
  readonly #events: Map<string, ShareEvent[]>;
  readonly #known = new Map<string, Known>();

  constructor(clock: Clock, former: ReadonlyMap<string, readonly ShareEvent[]>, onChange: () => void) {
    this.#clock = clock;
    this.#onChange = onChange;
    this.#events = new Map([...former].map(([share, events]) => [share, [...events]]));
  }

  /** Newest first. */
  of(share: string): readonly ShareEvent[] {
    return [...(this.#events.get(share) ?? [])].reverse();
  }

  all(): Readonly<Record<string, readonly ShareEvent[]>> {
    return Object.fromEntries(this.#events);
  }

  healthChanged({
    share,
    to,
    reason,
  }: {
    readonly share: string;
    readonly to: Health;
    readonly reason: string | null;
  }): void {
    if (to === 'healthy') this.#add(share, { kind: 'healthy' });
    // A share that was tried again and failed again counts as one failure.
    const last = this.#events.get(share)?.at(-1);
    const text = (reason ?? '').slice(0, LONGEST_REASON);
    if (to === 'failed' && !(last?.kind === 'failed' && last.reason === text))
      this.#add(share, { kind: 'failed', reason: text });
  }

  /** Below a share that stayed up. */
  rcloneReplaced({ share, reason }: { readonly share: string; readonly reason: string }): void {
    this.#add(share, { kind: 'replaced', reason: reason.slice(0, LONGEST_REASON) });
  }

  /** Other kinds of events are told by other means. */
  told({ type, data }: NotificationEvent): void {
    const { share, path, kept_at: keptAt } = data;
    if (type !== 'file.discarded' || typeof share !== 'string') return;
    const reason = `${String(path)}: what was written here is kept for some days at ${String(keptAt)}`;
    this.#add(share, { kind: 'discarded', reason: reason.slice(0, LONGEST_REASON) });
  }

  /**
   * Call it at every publication of the status. `answers`: whether a share's remote answered the last
   * check.
   */
  heard({ shares, nasOffline }: StatusRecord, answers: (share: string) => boolean | undefined): void {
    const names = new Set(shares.map(({ name }) => name));
    for (const name of this.#known.keys()) if (!names.has(name)) this.#known.delete(name);
    for (const share of shares) this.#compare(share, { answers: answers(share.name), nasOffline });
  }

  #compare(
    { name, mounted, dirtyCount, erroredFiles }: ShareStatus,
    { answers, nasOffline }: { readonly answers: boolean | undefined; readonly nasOffline: boolean },
  ): void {
    const before = this.#known.get(name);
    // The number of waiting files of a share that is down is too uncertain to say that everything is saved.
    if (!mounted) return;
    const wasOffline = before?.isOffline === true;
    // One failed check is not an outage yet; one successful check ends it.
    const isOffline = answers === false ? nasOffline || wasOffline : answers === undefined && wasOffline;
    const now = { dirtyCount, erroredFiles, isOffline };
    this.#known.set(name, now);
    for (const event of before ? differences(before, now) : []) this.#add(name, event);
  }

  #add(share: string, event: Omit<ShareEvent, 'at'>): void {
    const events = this.#events.get(share) ?? [];
    events.push({ at: this.#clock.now(), ...event });
    if (events.length > MOST_EVENTS) events.shift();
    // Moved to the end, so that the first is the share with the oldest event.
    this.#events.delete(share);
    this.#events.set(share, events);
    for (const oldest of this.#events.keys())
      if (this.#events.size > MOST_SHARES) this.#events.delete(oldest);
    this.#onChange();
  }
}

function differences(
  before: Known,
  { dirtyCount, erroredFiles, isOffline }: Known,
): readonly Omit<ShareEvent, 'at'>[] {
  return [
    ...(before.isOffline === isOffline
      ? []
      : [{ kind: isOffline ? ('offline' as const) : ('online' as const) }]),
    ...(before.dirtyCount === 0 && dirtyCount > 0 ? [{ kind: 'waiting' as const, files: dirtyCount }] : []),
    ...(before.dirtyCount > 0 && dirtyCount === 0 ? [{ kind: 'saved' as const }] : []),
    ...(erroredFiles > before.erroredFiles ? [{ kind: 'refused' as const, files: erroredFiles }] : []),
  ];
}

/** Parses an entry of a file that may be damaged. */
export function eventsFrom(read: unknown): ReadonlyMap<string, readonly ShareEvent[]> {
  if (typeof read !== 'object' || read === null) return new Map();
  return new Map(
    Object.entries(read)
      .slice(-MOST_SHARES)
      .map(([share, events]) => [
        share,
        (Array.isArray(events) ? (events as unknown[]) : []).filter(isEvent).slice(-MOST_EVENTS),
      ]),
  );
}

function isEvent(value: unknown): value is ShareEvent {
  if (typeof value !== 'object' || value === null) return false;
  const { at, kind, reason, files } = value as Partial<Record<keyof ShareEvent, unknown>>;
  return (
    Number.isFinite(at) &&
    typeof kind === 'string' &&
    KINDS.has(kind) &&
    (reason === undefined || typeof reason === 'string') &&
    (files === undefined || Number.isFinite(files))
  );
}
