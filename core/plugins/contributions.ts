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

/** Of one plugin, of one share, in a cycle: there are many shares. */
const SHARE_VALUES = 10_000;
const SHARE_CHARACTERS = 65_536;
const MOST_FIELDS = 200;
const MOST_TOLD = 10_000;
/** A stranger's that takes longer is not asked again for a while: nothing else runs meanwhile. */
const SLOW_MS = 200;
const REST_MS = 60_000;

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
  /** The last problem that was logged for each field. */
  readonly #told = new Map<string, string>();
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
    for (const { plugin, statusFields } of this.#options.ledgers()) {
      const budget = new Budget();
      for (const { field, read, default: own } of statusFields.filter((one) => !isCoreField(one.field))) {
        // While the plugin that declares a field is off, another's value is read by those who know the field.
        const standard = own ?? defaults[field];
        const value = this.#attempt(plugin, field, () => statusValue(read(), budget, standard));
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
    const ledgers = this.#options.ledgers().filter(({ shareStatus }) => shareStatus.length > 0);
    const [defaults, declared] = [this.#shareDefaults(), new Map(this.#declaredOfShares())];
    return (share) => this.#fieldsOfShare(share, { ledgers, defaults, declared });
  }

  /** A field that nobody declares belongs to the first who gives it. */
  #fieldsOfShare(share: string, { ledgers, defaults, declared }: Declared): Partial<ShareStatus> {
    const fields = { ...defaults };
    /** Who gave a field that nobody declares. */
    const givers = new Map<string, string>();
    for (const { plugin, shareStatus } of ledgers) {
      const budget = new Budget(SHARE_VALUES, SHARE_CHARACTERS);
      const take = (entry: ShareStatusEntry, field: string, value: unknown): void => {
        // A field that is there but undefined must not take the default's place.
        if (value === undefined) return;
        const owner = declared.get(field) ?? givers.get(field) ?? plugin;
        const copy = this.#attempt(plugin, field, () => {
          if (owner !== plugin) throw new UnfitValue('another plugin gives it already');
          return shareValue(entry, { field, value, known: defaults[field] }, budget);
        });
        if (copy === undefined) return;
        fields[field] = copy;
        if (!declared.has(field)) givers.set(field, plugin);
        if (entry.defaults === undefined) this.#remember(plugin, field);
      };
      for (const entry of shareStatus) {
        const given = this.#attempt(plugin, 'shareStatus', () => fieldsOf(entry.read(share)));
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

  #attempt<T>(plugin: string, field: string, read: () => T): T | undefined {
    const { clock, isStranger } = this.#options;
    const start = clock.monotonic();
    if (this.#rests(plugin, field, start)) return undefined;
    try {
      const value = read();
      const tookMs = Math.round(clock.monotonic() - start);
      if (tookMs > SLOW_MS && isStranger?.(plugin) === true) {
        this.#restsUntil.set(keyOf(plugin, field), start + tookMs + REST_MS);
        throw new UnfitValue(
          `takes more than ${SLOW_MS} ms, while nothing else runs; it is asked again after ${REST_MS / 1_000} s`,
        );
      }
      if (this.#told.size > 0) this.#told.delete(keyOf(plugin, field));
      return value;
    } catch (error) {
      this.#refuse(plugin, field, error);
      return undefined;
    }
  }

  /** Asked for each field of each share in each cycle, and hardly ever there is one. */
  #rests(plugin: string, field: string, nowMs: number): boolean {
    return this.#restsUntil.size > 0 && nowMs < (this.#restsUntil.get(keyOf(plugin, field)) ?? -Infinity);
  }

  #refuse(plugin: string, field: string, why: unknown): false {
    const key = keyOf(plugin, field);
    const reason = why instanceof Error ? why.message : String(why);
    if (this.#told.get(key) === reason) return false;
    if (this.#told.size >= MOST_TOLD) this.#told.clear();
    this.#told.set(key, reason);
    this.#options.log.error(
      { plugin, field, reason },
      'what the plugin says in the status cannot be used and is left out',
    );
    return false;
  }
}

function keyOf(plugin: string, field: string): string {
  return `${plugin} ${field}`;
}

/** What the active plugins say of a share's fields before they are read. */
interface Declared {
  readonly ledgers: readonly Ledger[];
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
  if (Object.keys(fields).length > MOST_FIELDS) throw new Error(`has more than ${MOST_FIELDS} fields`);
  return fields;
}
