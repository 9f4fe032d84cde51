/**
 * What active plugins contribute to the status. Each is read by itself: one that throws, or gives what the
 * contract does not allow, keeps the contract's default, and the log names it once until it is another
 * sentence.
 */
import type { Logger } from 'pino';
import type { ShareStatus, StatusRecord } from '../contract/status.ts';
import { isCoreField, shareField, statusField } from './instance/given.ts';
import type { Ledger } from './instance/ledger.ts';

export interface ContributionOptions {
  /** Of the active plugins. */
  readonly ledgers: () => readonly Ledger[];
  readonly log: Logger;
}

export class Contributions {
  readonly #options: ContributionOptions;
  /** The last sentence about each thing that could not be used. */
  readonly #told = new Map<string, string>();

  constructor(options: ContributionOptions) {
    this.#options = options;
  }

  statusFields(): Partial<StatusRecord> {
    const fields: Record<string, unknown> = {};
    for (const { plugin, statusFields } of this.#options.ledgers()) {
      for (const { field, read } of statusFields.filter((entry) => !isCoreField(entry.field))) {
        const value = this.#attempt(plugin, field, () => statusField(field, read()));
        if (value !== undefined) fields[field] = value;
      }
    }
    return fields as Partial<StatusRecord>;
  }

  /** A field belongs to the first who gives it. */
  shareStatus(share: string): Partial<ShareStatus> {
    const merged = new Map<string, unknown>();
    for (const { plugin, shareStatus } of this.#options.ledgers()) {
      const own = shareStatus.flatMap((read) =>
        Object.entries(this.#attempt(plugin, 'shareStatus', () => fieldsOf(read(share))) ?? {}),
      );
      const fresh = own.filter(
        ([field]) => !merged.has(field) || this.#refuse(plugin, field, 'another plugin gives it already'),
      );
      for (const [field, given] of fresh) {
        // A field that is there but undefined must not take the default's place.
        const value =
          given === undefined ? undefined : this.#attempt(plugin, field, () => shareField(field, given));
        if (value !== undefined) merged.set(field, value);
      }
    }
    return Object.fromEntries(merged);
  }

  #attempt<T>(plugin: string, field: string, read: () => T): T | undefined {
    try {
      const value = read();
      this.#told.delete(`${plugin} ${field}`);
      return value;
    } catch (error) {
      this.#refuse(plugin, field, error);
      return undefined;
    }
  }

  #refuse(plugin: string, field: string, why: unknown): false {
    const key = `${plugin} ${field}`;
    const reason = why instanceof Error ? why.message : String(why);
    if (this.#told.get(key) === reason) return false;
    this.#told.set(key, reason);
    this.#options.log.error(
      { plugin, field, reason },
      'what the plugin says in the status cannot be used and is left out',
    );
    return false;
  }
}

/** Read once: what a getter says next time may be another thing. */
function fieldsOf(given: unknown): Record<string, unknown> {
  if (given === undefined || given === null) return {};
  if (typeof given !== 'object' || Array.isArray(given)) throw new Error('is no table of fields');
  return { ...given };
}
