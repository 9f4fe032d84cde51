/**
 * The status as a runner is shown it, which has to fit into one message. What strangers' plugins say in it may be too
 * much for that: then it is left out, so that none keeps the others from hearing of the status, or from starting.
 */
import type { PluginContext } from '../../../contract/plugin.ts';
import type { ShareStatus, Snapshot, StatusRecord } from '../../../contract/status.ts';
import { isCoreField, isCoreShareField } from '../../instance/given-values.ts';
import { sharedJson } from '../protocol.ts';

/** As JSON. Leaves a third of a message for what else a runner is told with it. */
const MOST_BYTES = 1_048_576;

type Keeps = Readonly<Record<'daemon' | 'share', (field: string) => boolean>>;
const OF_CORE: Keeps = { daemon: isCoreField, share: isCoreShareField };

/** All runners are shown the same. */
const shown = new WeakMap<Snapshot, Snapshot>();

/** The snapshot itself where it fits; else without the fields of strangers; else with those of the core alone. */
export function shownSnapshot(ctx: PluginContext, snapshot: Snapshot): Snapshot {
  const known = shown.get(snapshot) ?? fitting(ctx, snapshot);
  shown.set(snapshot, known);
  return known;
}

function fitting(ctx: PluginContext, snapshot: Snapshot): Snapshot {
  if (fits(snapshot)) return snapshot;
  const ours = reduced(snapshot, ofOurs(ctx));
  return fits(ours) ? ours : reduced(snapshot, OF_CORE);
}

function fits(snapshot: Snapshot): boolean {
  return sharedJson(snapshot).length <= MOST_BYTES;
}

function ofOurs(ctx: PluginContext): Keeps {
  const plugins = ctx.find('plugins')?.list() ?? [];
  const ours = new Set(plugins.filter(({ thirdParty }) => !thirdParty).map(({ name }) => name));
  const { daemon, share } = ctx.use('status').owners();
  return {
    daemon: (field) => isCoreField(field) || ours.has(daemon.get(field) ?? ''),
    share: (field) => isCoreShareField(field) || ours.has(share.get(field) ?? ''),
  };
}

function reduced(snapshot: Snapshot, { daemon, share }: Keeps): Snapshot {
  const { shares, ...fields } = snapshot.record;
  const record = {
    ...only(fields, daemon),
    shares: shares.map((one) => only(one, share) as ShareStatus),
  };
  return { ...snapshot, record: record as unknown as StatusRecord };
}

function only(fields: object, isKept: (field: string) => boolean): object {
  return Object.fromEntries(Object.entries(fields).filter(([field]) => isKept(field)));
}
