import type { Clock, DirectoryRefresher, LiveShare, Logger } from 'mountkeeper';

/** A mount may reach the NAS a little later than the probe that found it. */
const ANSWERS_WITHIN_MS = 20_000;
const LOOK_EVERY_MS = 500;

export interface OnReturnOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly log: Logger;
  readonly shares: () => readonly LiveShare[];
  /** True when its probe began while the NAS was silent. */
  readonly isStuck: (shareName: string) => boolean;
  readonly reconnect: (shareName: string) => Promise<void>;
  /** Undefined when no plugin refreshes folders. */
  readonly refresher: () => DirectoryRefresher | undefined;
}

/**
 * What is done when a NAS returns: shares that are not mounted are probed at once instead of after their
 * back-off or a hanging probe, and mounted ones refresh their folders, one share after the other. The
 * supervisor itself restarts waiting uploads.
 */
export async function onReturn(connection: string, options: OnReturnOptions): Promise<void> {
  const own = await probeFailed(connection, options);
  for (const { spec, mount } of own) {
    if (mount !== undefined) await refreshOnceItAnswers(spec.share.name, options);
  }
}

/** Resolves with the shares of the connection, as they were before. */
export async function probeFailed(
  connection: string,
  { log, shares, isStuck, reconnect }: OnReturnOptions,
): Promise<readonly LiveShare[]> {
  const own = shares().filter(({ spec }) => spec.connection.name === connection);
  for (const { spec, mount, health } of own) {
    if (mount !== undefined || !(health === 'failed' || (health === 'probing' && isStuck(spec.share.name))))
      continue;
    await reconnect(spec.share.name).catch((error: unknown) =>
      log.warn({ share: spec.share.name, err: error }, 'share not probed on return of its NAS'),
    );
  }
  return own;
}

async function refreshOnceItAnswers(
  name: string,
  { clock, log, refresher, shares, signal }: OnReturnOptions,
): Promise<void> {
  const answers = (): boolean =>
    shares().find(({ spec }) => spec.share.name === name)?.remoteAnswers === true;
  try {
    for (let waitedMs = 0; !answers() && waitedMs < ANSWERS_WITHIN_MS; waitedMs += LOOK_EVERY_MS)
      await clock.sleep(LOOK_EVERY_MS, signal);
    if (answers()) await refresher()?.refresh(name, '');
  } catch (error) {
    log.debug(
      { share: name, reason: (error as Error).message },
      'folders not refreshed on return of the NAS',
    );
  }
}
