/**
 * What plugins contribute to the status, over the defaults that they declare. Each is read by itself: one that
 * throws, is slow, or gives what cannot be used keeps its default, and the log names it once until it is
 * another sentence.
 */
import type { Logger } from 'pino';
import type { Clock } from '../contract/platform.ts';
import type { ShareStatus, StatusOwners, StatusRecord } from '../contract/status.ts';
import {
  Budget,
  isCoreField,
  isCoreShareField,
  refusePromise,
  statusValue,
  UnfitValue,
} from './instance/given-values.ts';
import type { Ledger, ShareStatusEntry } from './instance/ledger.ts';
import { reasonOf } from '../sdk/reason-of.ts';

/** Of one plugin, of one share, in a cycle: there are many shares. */
const SHARE_VALUES = 10_000;
const SHARE_CHARACTERS = 65_536;
/** Of a third party, of the daemon, and once more of all shares together: each value is copied in each cycle. */
const STRANGER_VALUES = 20_000;
const STRANGER_CHARACTERS = 1_048_576;
const MOST_FIELDS = 200;
/** Of a field of a share, in characters: what is declared has its limit elsewhere. */
const LONGEST_NAME = 100;
/** Fields of one instance of a plugin whose problem is remembered; of more the log says nothing. */
const MOST_TOLD = 200;
/**
 * A stranger's that takes longer is not asked again for a while: nothing else runs meanwhile. Also all fields of a
 * plugin together, of the daemon or of all shares.
 */
const SLOW_MS = 200;
const REST_MS = 60_000;

/** What one plugin says of the daemon, or of all shares, in one cycle. */
interface Pass {
  readonly ledger: Ledger;
  readonly budget: Budget;
  spentMs: number;
}

export interface ContributionOptions {
  /** Ledgers of the active plugins. */
  readonly ledgers: () => readonly Ledger[];
  /** Of all plugins that can be used, on or off: their defaults stand. Left out: of the active ones alone. */
  readonly known?: () => readonly Ledger[];
  /** Whether a plugin is a third party's. */
  readonly isStranger?: (plugin: string) => boolean;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Logger;
}

export class Contributions {
  readonly #options: ContributionOptions;
  /** The last problem that was logged for each field. A plugin that is replaced is another one. */
  readonly #told = new WeakMap<Ledger, Map<string, string>>();
  /** When what was slow is asked again (monotonic). */
  readonly #restsUntil = new Map<string, number>();
  /** Fields of shares that were given without being declared, by plugin; the latest `MOST_FIELDS` of each. */
  readonly #undeclared = new Map<string, Set<string>>();

  constructor(options: ContributionOptions) {
    this.#options = options;
  }

  /** What the status says while no plugin is up. */
  defaults(): Partial<StatusRecord> {
    const fields = this.#declared().flatMap(({ statusFields }) =>
      statusFields.filter((entry) => entry.default !== undefined && !isCoreField(entry.field)),
    );
    return Object.fromEntries(fields.map((entry) => [entry.field, entry.default]));
  }

  statusFields(): Partial<StatusRecord> {
    const defaults: Readonly<Record<string, unknown>> = this.defaults();
    const fields: Record<string, unknown> = { ...defaults };
    for (const ledger of this.#options.ledgers()) {
      const pass = this.#begin(ledger);
      for (const { field, read, default: own } of ledger.statusFields.filter(
        (one) => !isCoreField(one.field),
      )) {
        // While the plugin that declares a field is off, another's value is read by those who know the field.
        const standard = own ?? defaults[field];
        const value = this.#attempt(pass, field, () => statusValue(read(), pass.budget, standard));
        if (value !== undefined) fields[field] = value;
      }
    }
    return fields as Partial<StatusRecord>;
  }

  shareStatus(share: string): Partial<ShareStatus> {
    return this.shareReader()(share);
  }

  /** Reads one share after another, within one turn: what is declared is gone through once, not once for each. */
  shareReader(): (share: string) => Partial<ShareStatus> {
    const passes = this.#options
      .ledgers()
      .filter(({ shareStatus }) => shareStatus.length > 0)
      .map((ledger) => this.#begin(ledger));
    const [defaults, declared] = [this.#shareDefaults(), new Map(this.#declaredOfShares())];
    return (share) => this.#fieldsOfShare(share, { passes, defaults, declared });
  }

  #begin(ledger: Ledger): Pass {
    const budget = this.#isStranger(ledger.plugin)
      ? new Budget(STRANGER_VALUES, STRANGER_CHARACTERS)
      : new Budget();
    return { ledger, budget, spentMs: 0 };
  }

  #isStranger(plugin: string): boolean {
    return this.#options.isStranger?.(plugin) === true;
  }

  /** A field that nobody declares belongs to the first who gives it. */
  #fieldsOfShare(share: string, { passes, defaults, declared }: Declared): Partial<ShareStatus> {
    const fields = { ...defaults };
    /** Who gave a field that nobody declares. */
    const givers = new Map<string, string>();
    for (const pass of passes) {
      const { plugin, shareStatus } = pass.ledger;
      // Those that come with Mountkeeper say something of each share, however many there are.
      const whole = this.#isStranger(plugin) ? pass.budget : undefined;
      const budget = new Budget(SHARE_VALUES, SHARE_CHARACTERS, whole);
      const take = (entry: ShareStatusEntry, field: string, value: unknown): void => {
        // A field that is there but undefined must not take the default's place.
        if (value === undefined) return;
        const owner = declared.get(field) ?? givers.get(field) ?? plugin;
        const copy = this.#attempt(pass, field, () => {
          if (owner !== plugin) throw new UnfitValue('another plugin gives it already');
          return shareValue(entry, { field, value, known: defaults[field] }, budget);
        });
        if (copy === undefined) return;
        fields[field] = copy;
        if (!declared.has(field)) givers.set(field, plugin);
        if (entry.defaults === undefined) this.#remember(plugin, field);
      };
      for (const entry of shareStatus) {
        const given = this.#attempt(pass, 'shareStatus', () => fieldsOf(entry.read(share)));
        for (const field in given) take(entry, field, given[field]);
      }
    }
    return fields;
  }

  owners(): StatusOwners {
    const active = this.#options.ledgers();
    const names = new Set(active.map(({ plugin }) => plugin));
    const undeclared = [...this.#undeclared].flatMap(([plugin, fields]) =>
      names.has(plugin) ? [...fields].map((field) => [field, plugin] as const) : [],
    );
    return {
      daemon: new Map(
        active.flatMap(({ plugin, statusFields }) =>
          statusFields.map(({ field }) => [field, plugin] as const),
        ),
      ),
      share: new Map([...undeclared, ...this.#declaredOfShares()]),
    };
  }

  /** A plugin that names its fields anew in each cycle must not fill the memory. */
  #remember(plugin: string, field: string): void {
    const fields = this.#undeclared.get(plugin) ?? new Set();
    this.#undeclared.set(plugin, fields);
    fields.delete(field);
    fields.add(field);
    const [oldest] = fields;
    if (oldest !== undefined && fields.size > MOST_FIELDS) fields.delete(oldest);
  }

  #declaredOfShares(): (readonly [field: string, plugin: string])[] {
    return this.#options
      .ledgers()
      .flatMap(({ plugin, shareStatus }) =>
        shareStatus.flatMap(({ defaults = {} }) =>
          Object.keys(defaults).map((field) => [field, plugin] as const),
        ),
      );
  }

  /** The last one's default holds: what is active stands over what is off, the package's over a stranger's. */
  #declared(): readonly Ledger[] {
    const { ledgers, known } = this.#options;
    return [...(known?.() ?? []).toReversed(), ...ledgers()];
  }

  #shareDefaults(): Record<string, unknown> {
    const all = this.#declared().flatMap(({ shareStatus }) => shareStatus.map(({ defaults }) => defaults));
    const fields = all.flatMap((defaults) => Object.entries(defaults ?? {}));
    return Object.fromEntries(fields.filter(([field]) => !isCoreShareField(field)));
  }

  #attempt<T>(pass: Pass, field: string, read: () => T): T | undefined {
    const { ledger } = pass;
    const nowMs = this.#options.clock.monotonic();
    if (this.#rests(ledger.plugin, field, nowMs)) return undefined;
    try {
      const value = this.#timed(pass, field, read);
      this.#told.get(ledger)?.delete(field);
      return value;
    } catch (error) {
      this.#refuse(ledger, field, error);
      return undefined;
    }
  }

  /** What is refused takes its time as well. */
  #timed<T>(pass: Pass, field: string, read: () => T): T {
    const fromMs = this.#options.clock.monotonic();
    try {
      return read();
    } finally {
      this.#mindTime(pass, field, fromMs);
    }
  }

  /** Throws where it was too long. */
  #mindTime(pass: Pass, field: string, fromMs: number): void {
    const { plugin } = pass.ledger;
    if (!this.#isStranger(plugin)) return;
    const nowMs = this.#options.clock.monotonic();
    const isSlow = Math.round(nowMs - fromMs) > SLOW_MS;
    if (!isSlow) pass.spentMs += nowMs - fromMs;
    if (!isSlow && pass.spentMs <= SLOW_MS) return;
    this.#restsUntil.set(keyOf(plugin, isSlow ? field : ALL), nowMs + REST_MS);
    throw new UnfitValue(
      `takes more than ${SLOW_MS} ms${isSlow ? '' : ' with what else the plugin says in the status'}, ` +
        `while nothing else runs; it is asked again after ${REST_MS / 1_000} s`,
    );
  }

  /** Asked for each field of each share in each cycle, and hardly ever there is one. */
  #rests(plugin: string, field: string, nowMs: number): boolean {
    if (this.#restsUntil.size === 0) return false;
    const until = (of: string): number => this.#restsUntil.get(keyOf(plugin, of)) ?? -Infinity;
    return nowMs < Math.max(until(field), until(ALL));
  }

  /** A plugin that names its fields anew in each cycle fills neither the memory nor the log. */
  #refuse(ledger: Ledger, field: string, why: unknown): void {
    const { plugin } = ledger;
    const told = this.#told.get(ledger) ?? new Map<string, string>();
    this.#told.set(ledger, told);
    const reason = reasonOf(why);
    if (told.get(field) === reason || (told.size >= MOST_TOLD && !told.has(field))) return;
    told.set(field, reason);
    this.#options.log.error(
      { plugin, field, reason },
      'what the plugin says in the status cannot be used and is left out',
    );
  }
}

/** In place of a field's name, which is longer. */
const ALL = '';

function keyOf(plugin: string, field: string): string {
  return `${plugin} ${field}`;
}

/** What the active plugins say of a share's fields before they are read. */
interface Declared {
  readonly passes: readonly Pass[];
  readonly defaults: Readonly<Record<string, unknown>>;
  readonly declared: ReadonlyMap<string, string>;
}

interface GivenField {
  readonly field: string;
  readonly value: unknown;
  /** The field's default by whoever declares it, on or off. */
  readonly known: unknown;
}

function shareValue(
  { defaults }: ShareStatusEntry,
  { field, value, known }: GivenField,
  budget: Budget,
): unknown {
  if (isCoreShareField(field)) throw new UnfitValue("is the core's own");
  if (defaults !== undefined && !Object.hasOwn(defaults, field))
    throw new UnfitValue('is not among the defaults that were declared with it');
  return statusValue(value, budget, defaults?.[field] ?? known);
}

/** Read once: what a getter says next time may be another thing. */
function fieldsOf(given: unknown): Record<string, unknown> {
  refusePromise(given);
  if (given === undefined || given === null) return {};
  if (typeof given !== 'object' || Array.isArray(given)) throw new Error('is no table of fields');
  const fields = { ...given };
  const names = Object.keys(fields);
  if (names.length > MOST_FIELDS) throw new Error(`has more than ${MOST_FIELDS} fields`);
  if (names.some((name) => name.length > LONGEST_NAME))
    throw new Error(`has a field whose name is longer than ${LONGEST_NAME} characters`);
  return fields;
}
