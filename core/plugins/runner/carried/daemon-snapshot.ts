/**
 * What of the daemon a runner is shown: plain data, sent when it has changed, without secrets but those of the
 * plugin's own section.
 */
import { dirname, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { isReference } from '../../../config/secrets/secrets.ts';
import type { SecretReference } from '../../../config/secrets/secrets.ts';
import type { PluginContext } from '../../../contract/plugin.ts';
import type { LiveShare } from '../../../contract/shares.ts';
import type { Declaration } from './declaration.ts';
import { sentence } from '../../../platform/log/thrown.ts';
import { shownSnapshot } from './shown-snapshot.ts';
import type { DaemonSnapshot, ResolvedSecret } from '../protocol.ts';

const PACE_MS = 1_000;

type Parts = { -readonly [K in keyof DaemonSnapshot]: () => unknown };

function partsFor(ctx: PluginContext, declaration: Declaration): Parts {
  const { requires, shareStatus } = declaration;
  return {
    ...((requires.includes('status') || shareStatus.length > 0) && {
      snapshot: () => shownSnapshot(ctx, ctx.use('status').snapshot),
    }),
    ...(requires.includes('status') && { notices: () => ctx.use('status').notices }),
    ...(requires.includes('shares') && { shares: () => ctx.use('shares').list().map(plainShare) }),
    ...(requires.includes('config') && { config: maskedConfig(ctx) }),
    ...(requires.includes('secrets') && { secrets: ownSecrets(ctx, declaration) }),
  };
}

export function daemonSnapshot(ctx: PluginContext, declaration: Declaration): DaemonSnapshot {
  return Object.fromEntries(
    Object.entries(partsFor(ctx, declaration)).map(([name, read]) => [name, read()]),
  ) as DaemonSnapshot;
}

/** Tells what has changed, at most once a second, until released. */
export function followDaemon(
  ctx: PluginContext,
  declaration: Declaration,
  tell: (world: DaemonSnapshot) => void,
): () => void {
  const parts = Object.entries(partsFor(ctx, declaration));
  if (parts.length === 0) return () => undefined;
  const clock = ctx.use('clock');
  let told: Record<string, unknown> = {};
  let cancel: () => void = () => undefined;
  const look = (): void => {
    const now = Object.fromEntries(parts.map(([name, read]) => [name, read()]));
    const news = Object.entries(now).filter(([name, value]) => isNews(name, told[name], value));
    told = now;
    if (news.length > 0) tell(Object.fromEntries(news) as DaemonSnapshot);
    cancel = clock.after(PACE_MS, look);
  };
  look();
  return () => cancel();
}

/** Each snapshot is another one, and all runners are shown the same: nothing in it has to be looked at. */
function isNews(name: string, before: unknown, now: unknown): boolean {
  return before !== now && (name === 'snapshot' || !isDeepStrictEqual(before, now));
}

/** The secrets of its own section, for a plugin that asks for them: to be sent before a section that changed. */
export function secretsNow(ctx: PluginContext, declaration: Declaration): DaemonSnapshot {
  return declaration.requires.includes('secrets') ? { secrets: ownSecrets(ctx, declaration)() } : {};
}

/**
 * Only what the file itself refers to: a reference that is the schema's own default would let its author read
 * any file of the daemon. A file or a variable is read once for each section, as often as a plugin inside the
 * daemon would at least.
 */
function ownSecrets(ctx: PluginContext, { name, config }: Declaration): () => readonly ResolvedSecret[] {
  let last: { readonly of: object; readonly secrets: readonly ResolvedSecret[] } | undefined;
  return () => {
    if (last?.of === ctx.config) return last.secrets;
    const { file, current } = ctx.use('config');
    const { plugins, ...sections } = current.document;
    const written = config?.section === undefined ? partOf(plugins, name) : sections[config.section];
    const references = writtenIn(ctx.config, written, dirname(file));
    last = { of: ctx.config, secrets: references.map((one) => resolved(ctx, one)) };
    return last.secrets;
  };
}

/** References in the value that stand at the same place in what was written. */
function writtenIn(value: unknown, written: unknown, folder: string): readonly SecretReference[] {
  if (isReference(value)) return isDeepStrictEqual(value, absolute(written, folder)) ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, part]) => writtenIn(part, partOf(written, key), folder));
}

function partOf(value: unknown, key: string): unknown {
  const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, key);
  return isThere ? (value as Record<string, unknown>)[key] : undefined;
}

/** The file of a reference is written relative to the configuration's folder. */
function absolute(written: unknown, folder: string): unknown {
  if (!isReference(written) || !('file' in written)) return written;
  return { file: resolve(folder, written.file) };
}

function resolved(ctx: PluginContext, reference: SecretReference): ResolvedSecret {
  try {
    return { reference, value: ctx.use('secrets').resolve(reference) };
  } catch (error) {
    return { reference, problem: sentence(error) };
  }
}

/** Masking takes a while: done once for each document. */
function maskedConfig(ctx: PluginContext): () => unknown {
  let last: { readonly of: unknown; readonly masked: unknown } | undefined;
  return () => {
    const service = ctx.use('config');
    if (last?.of !== service.current) last = { of: service.current, masked: service.redacted() };
    return last.masked;
  };
}

/** Without its mount, which is more than data, and without the connection's options. */
function plainShare(live: LiveShare): object {
  const { spec, health, remoteAnswers, remoteTookMs } = live;
  const { name, connection: of, remote_path, mount_point, read_only, protocols } = spec.share;
  const share = { name, connection: of, remote_path, mount_point, read_only, protocols };
  const { connection } = spec;
  return {
    spec: { share, connection: { name: connection.name, type: connection.type, options: {} } },
    health,
    remoteAnswers,
    remoteTookMs,
  };
}
