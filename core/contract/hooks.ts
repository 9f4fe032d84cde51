/** Contract of hooks: the points at which a plugin can observe or change what the core does. */
import type { Config, ConfigDiff, LoadedConfig } from './config.ts';
import type { AnsweredRequest } from './http.ts';
import type { Bandwidth, RemoteEvidence, ShareLimit } from './mount.ts';
import type { Check, Notice, NotificationEvent } from './notifications.ts';
import type { Health, ShareTrouble, Snapshot } from './status.ts';

/** `remote`: what the failure shows about the remote, if anything. */
export interface HealthChange {
  readonly share: string;
  readonly from: Health;
  readonly to: Health;
  readonly reason: string | null;
  readonly remote?: RemoteEvidence | undefined;
  /**
   * True where it is mounted: of every `healthy`, and of `probing` where its remote path cannot be listed though it is
   * mounted (`Mount.isUnreadable`). Absent: it is not.
   */
  readonly mounted?: true;
}

/**
 * The closed list of hooks. `before…` may veto (the returned string is the reason), `after…` and `…Changed`
 * observe, `resolve…` transform their argument synchronously, `collect…` gather lists.
 */
export interface Hooks {
  /**
   * Called after a successful probe, before each mount. A returned reason fails the share and is shown. Third parties
   * have 2 s for it together.
   */
  beforeMount: { args: [share: string]; result: string | undefined };
  /** A share was mounted, or its mount was adopted from a former daemon. */
  afterMount: { args: [share: string]; result: void };
  /** A mount has ended: it was unmounted, it died, or it hung and was killed. */
  afterUnmount: { args: [share: string]; result: void };
  /**
   * A share went from one health to another, as the status says it; `reason` is set when it failed, `remote` when that
   * shows something about the remote. One that is mounted goes from `healthy` to `probing` and back while it cannot be
   * listed.
   */
  shareHealthChanged: { args: [change: HealthChange]; result: void };
  /**
   * Called for every valid document that differs from the running one, from the file or over HTTP. A
   * returned reason refuses it.
   */
  beforeReload: { args: [next: LoadedConfig, diff: ConfigDiff]; result: string | undefined };
  /** A document has been applied. */
  afterReload: { args: [next: LoadedConfig, diff: ConfigDiff]; result: void };
  /**
   * A request has been answered: one that is neither GET, HEAD nor OPTIONS, or any that was refused with 401, 403,
   * 421 or 429.
   */
  afterRequest: { args: [request: AnsweredRequest]; result: void };
  /** An event that people should hear of: every plugin that delivers notifications taps this hook. */
  notification: { args: [event: NotificationEvent]; result: void };
  /** A supervisor cycle has ended after `tookMs` milliseconds. A slow tap misses cycles. */
  afterCycle: { args: [snapshot: Snapshot, tookMs?: number]; result: void };
  /**
   * Transforms the whole budget before it is divided over the shares. Called at every division: must be
   * quick.
   */
  resolveBandwidth: { args: [budget: Bandwidth]; result: Bandwidth };
  /**
   * Limits of single shares, within the whole budget; of several for one share the least counts. Gathered in
   * every cycle, so a limit lasts as long as it is given.
   */
  collectShareLimits: { args: []; result: readonly ShareLimit[] };
  /**
   * What is wrong with a share though it is mounted, as a probe of your own has found it. Each sentence stands in
   * the share's `healthMessage` behind the core's own and the plugin's name, as long as it is given and the share is
   * mounted; it changes nothing else. Gathered in every cycle, so it says what is known already.
   */
  collectShareTroubles: { args: []; result: readonly ShareTrouble[] };
  /** Messages for people. Gathered in every cycle. */
  collectNotices: { args: []; result: readonly Notice[] };
  /** Lines of `mountkeeper doctor`. Called while no other effect of the plugin is active. */
  collectChecks: { args: [config: Config]; result: readonly Check[] };
}
