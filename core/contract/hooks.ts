/** The contract of hooks: where a plugin may have its say. */
import type { Config, ConfigDiff, LoadedConfig } from './config.ts';
import type { Bandwidth, RemoteEvidence } from './mount.ts';
import type { Check, Notice, NotificationEvent } from './notifications.ts';
import type { Health, Snapshot } from './status.ts';

/** `remote`: what it shows about the remote, where it shows anything. */
export interface HealthChange {
  readonly share: string;
  readonly from: Health;
  readonly to: Health;
  readonly reason: string | null;
  readonly remote?: RemoteEvidence | undefined;
}

/**
 * The closed catalogue of hooks. `before…` may veto (a returned string is the reason), `after…` and
 * `…Changed` observe, `resolve…` transform their argument synchronously, `collect…` gather lists.
 */
export interface Hooks {
  /** Asked after a successful probe, before each mount. The reason given is shown as why the share failed. */
  beforeMount: { args: [share: string]; result: string | undefined };
  /** A share is mounted, or was adopted from a former daemon. */
  afterMount: { args: [share: string]; result: void };
  /** A mount is gone: taken down, dead or killed because it hung. */
  afterUnmount: { args: [share: string]; result: void };
  /**
   * A share went from one health to another; `reason` is set when it failed, `remote` when that shows
   * something about the remote.
   */
  shareHealthChanged: { args: [change: HealthChange]; result: void };
  /**
   * Asked about every valid document that differs from the running one, from the file or over HTTP. The
   * reason given refuses it.
   */
  beforeReload: { args: [next: LoadedConfig, diff: ConfigDiff]; result: string | undefined };
  /** A document has been applied. */
  afterReload: { args: [next: LoadedConfig, diff: ConfigDiff]; result: void };
  /**
   * People should hear of something: every plugin that delivers such events does it here, each in its own
   * way.
   */
  notification: { args: [event: NotificationEvent]; result: void };
  /** A cycle of the supervisor has ended; `tookMs` is how long it took. Whoever is slow misses cycles. */
  afterCycle: { args: [snapshot: Snapshot, tookMs?: number]; result: void };
  /**
   * Changes the whole budget before it is divided over the shares. Called at every division: must be quick.
   */
  resolveBandwidth: { args: [budget: Bandwidth]; result: Bandwidth };
  /** What the daemon has to say to people. Gathered in every cycle. */
  collectNotices: { args: []; result: readonly Notice[] };
  /** Lines of `mountkeeper doctor`. Called without any other effect of the plugin being up. */
  collectChecks: { args: [config: Config]; result: readonly Check[] };
}
