/** What active plugins contribute to the status, each read isolated: one that throws keeps the contract's default. */
import type { Logger } from 'pino';
import type { ShareStatus, StatusRecord } from './api.ts';
import type { Ledger } from './plugin/ledger.ts';

export function statusFields(ledgers: readonly Ledger[], log: Logger): Partial<StatusRecord> {
  const fields: Record<string, unknown> = {};
  for (const ledger of ledgers) {
    for (const entry of ledger.statusFields) {
      const value = attempt(() => entry.read(), { plugin: ledger.plugin, log });
      if (value !== undefined) fields[entry.field] = value;
    }
  }
  return fields as Partial<StatusRecord>;
}

export function shareStatus(ledgers: readonly Ledger[], share: string, log: Logger): Partial<ShareStatus> {
  const merged: Partial<ShareStatus> = {};
  for (const ledger of ledgers) {
    for (const read of ledger.shareStatus) Object.assign(merged, given(attempt(() => read(share), { plugin: ledger.plugin, log })));
  }
  return merged;
}

/** A field that is there but undefined must not take the default's place. */
function given(partial: Partial<ShareStatus> | undefined): Partial<ShareStatus> {
  return Object.fromEntries(Object.entries(partial ?? {}).filter(([, value]) => value !== undefined));
}

function attempt<T>(read: () => T, about: { readonly plugin: string; readonly log: Logger }): T | undefined {
  try {
    return read();
  } catch (error) {
    about.log.error({ plugin: about.plugin, err: error }, 'status contribution failed');
    return undefined;
  }
}
