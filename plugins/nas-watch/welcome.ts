import type { DirectoryRefresher, LiveShare, Logger } from 'mountkeeper';

export interface WelcomeOptions {
  readonly log: Logger;
  readonly shares: () => readonly LiveShare[];
  /** Its probe began while the NAS was silent. */
  readonly isStuck: (shareName: string) => boolean;
  readonly reconnect: (shareName: string) => Promise<void>;
  /** Undefined while nobody refreshes folders. */
  readonly refresher: () => DirectoryRefresher | undefined;
}

/**
 * What a returned NAS is met with: shares that are not mounted are probed at once instead of after their back-off or a probe that
 * hangs, and those that are mounted read their folders anew, one share after the other. Queues that wait are kicked by the
 * supervisor itself.
 */
export async function welcomeBack(connection: string, { log, shares, isStuck, reconnect, refresher }: WelcomeOptions): Promise<void> {
  const own = shares().filter(({ spec }) => spec.connection.name === connection);
  for (const { spec, mount, health } of own) {
    if (mount !== undefined || !(health === 'failed' || (health === 'probing' && isStuck(spec.share.name)))) continue;
    await reconnect(spec.share.name).catch((error: unknown) => log.warn({ share: spec.share.name, err: error }, 'share not probed on return of its NAS'));
  }
  for (const { spec, mount } of own) {
    if (mount === undefined) continue;
    await refresher()?.refresh(spec.share.name, '').catch((error: unknown) => {
      log.debug({ share: spec.share.name, reason: (error as Error).message }, 'folders not refreshed on return of the NAS');
    });
  }
}
