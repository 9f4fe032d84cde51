/**
 * The wanted settings of a share, and the former ones that it may have to keep for a while: dirty files are
 * uploaded only by a mount with their own settings, so while some wait, the share is mounted with those.
 */
import type { MountPlan, ShareSpec } from '../contract/mount.ts';
import { NOTES } from './share-status.ts';
import type { ActiveMount } from './active-mount.ts';
import { leftIn } from './unmounting.ts';
import type { RunnerEnvironment } from './environment.ts';

/**
 * How an active mount compares with the wanted settings; `elsewhere`: its dirty files would go to another
 * remote path.
 */
export type Difference = 'none' | 'settings' | 'elsewhere';

export class ShareSettings {
  readonly #around: RunnerEnvironment;
  #wanted: ShareSpec;
  #former: ActiveMount | undefined;
  #isWaiting = false;
  #isForced = false;
  #note: string | undefined;
  /** Fingerprint of the mount that is being made. */
  #underWay: string | undefined;

  constructor(wanted: ShareSpec, around: RunnerEnvironment) {
    this.#wanted = wanted;
    this.#around = around;
  }

  get wanted(): ShareSpec {
    return this.#wanted;
  }

  /** True from the look that has found the mount's settings to be former ones. */
  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** Why the share does not have the wanted settings; undefined when it has. */
  get note(): string | undefined {
    return this.#note;
  }

  /** True when the mount that is being made does not depend on what changed. */
  want(spec: ShareSpec): boolean {
    this.#wanted = spec;
    this.#isForced = false;
    return this.#underWay !== undefined && this.#planOf(spec)?.fingerprint === this.#underWay;
  }

  /** Applies a change without waiting for dirty files any longer. */
  force(): void {
    this.#isForced ||= this.#isWaiting;
  }

  /** The settings of an adopted mount, as far as they are known. */
  ofAdopted(plan: MountPlan): ShareSpec | undefined {
    return leadsTo(this.#planOf(this.#wanted), plan.identity) ? this.#wanted : undefined;
  }

  /** The settings for the next mount. */
  async choose(): Promise<ShareSpec> {
    const wanted = this.#wanted;
    const chosen = this.#isForced ? wanted : await this.#formerIfNeeded(wanted);
    this.#isWaiting = chosen !== wanted;
    this.#note = this.#isWaiting ? NOTES.former : undefined;
    this.#underWay = this.#planOf(chosen)?.fingerprint;
    return chosen;
  }

  /** The attempt that `choose` began has ended without a mount. */
  failed(): void {
    this.#underWay = undefined;
  }

  /** True when the mount has the wanted settings. */
  mounted(active: ActiveMount): boolean {
    this.#underWay = undefined;
    this.#former = active;
    const isWanted = active.spec === this.#wanted;
    if (isWanted) this.#isForced = false;
    return isWanted;
  }

  /** Files of this share on the disk, in every cache folder that its former settings may have used. */
  async pending(): Promise<number> {
    const mounter = this.#around.mounter();
    if (!mounter) throw new Error('no mounter is active');
    return (await mounter.pending(this.#wanted.share.name)).count;
  }

  compare(active: ActiveMount): Difference {
    const plan = this.#planOf(this.#wanted);
    const difference = differenceOf(plan, active.mount.plan);
    this.#isWaiting = difference !== 'none';
    if (difference === 'none') this.#isForced = false;
    this.#note = plan === undefined ? NOTES.noMounter : difference === 'none' ? undefined : NOTES.waiting;
    return difference;
  }

  async #formerIfNeeded(wanted: ShareSpec): Promise<ShareSpec> {
    const former = this.#former;
    if (!former?.spec || former.isDrained) return wanted;
    if (leadsTo(this.#planOf(wanted), former.mount.plan.identity)) return wanted;
    if ((await leftIn(this.#around, former.mount))?.count === 0) return wanted;
    // The remote path may depend on more than the share's own settings; then the former ones lead nowhere.
    if (this.#planOf(former.spec)?.identity !== former.mount.plan.identity) return wanted;
    this.#around.log.warn(
      { share: wanted.share.name },
      'mounted with its former settings until its dirty files are on the remote',
    );
    return former.spec;
  }

  /** Undefined when no mounter is active or it cannot plan. */
  #planOf(spec: ShareSpec): MountPlan | undefined {
    try {
      return this.#around.mounter()?.plan(spec);
    } catch (error) {
      this.#around.log.error({ share: spec.share.name, err: error }, 'share not planned');
      return undefined;
    }
  }
}

/** Without a plan there is nothing to change to. */
function differenceOf(plan: MountPlan | undefined, { fingerprint, identity }: MountPlan): Difference {
  if (plan === undefined || plan.fingerprint === fingerprint) return 'none';
  return leadsTo(plan, identity) ? 'settings' : 'elsewhere';
}

/** Whether dirty files of a mount with this identity go where the plan leads. */
function leadsTo(plan: MountPlan | undefined, identity: string): boolean {
  return plan?.identity === identity;
}
