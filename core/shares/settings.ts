/**
 * The settings a share is wanted with, and the ones it may have to keep for a while: dirty files of the last
 * mount go up from its own settings only, so as long as some wait, the share comes back with those.
 */
import type { MountPlan, ShareSpec } from '../contract/mount.ts';
import { NOTES } from './description.ts';
import type { ActiveMount } from './active-mount.ts';
import { leftIn } from './unmounting.ts';
import type { RunnerEnvironment } from './environment.ts';

/**
 * How a active mount stands to the wanted settings; `elsewhere`: its dirty files would go to another place.
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

  /** Why the share is not as wanted, or undefined. */
  get note(): string | undefined {
    return this.#note;
  }

  /** True when the mount that is being made does not depend on what changed. */
  want(spec: ShareSpec): boolean {
    this.#wanted = spec;
    this.#isForced = false;
    return this.#underWay !== undefined && this.#planOf(spec)?.fingerprint === this.#underWay;
  }

  /** A change that waits for dirty files waits no longer. */
  force(): void {
    this.#isForced ||= this.#isWaiting;
  }

  /** The settings that an adopted mount has, as far as they are known. */
  ofAdopted(plan: MountPlan): ShareSpec | undefined {
    return plan.identity === this.#planOf(this.#wanted)?.identity ? this.#wanted : undefined;
  }

  /** The settings to mount with next. */
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
  mounted(held: ActiveMount): boolean {
    this.#underWay = undefined;
    this.#former = held;
    if (held.spec !== this.#wanted) return false;
    this.#isForced = false;
    return true;
  }

  /** Files of this share on the disk, wherever its former settings may have put them. */
  async pending(): Promise<number> {
    const mounter = this.#around.mounter();
    if (!mounter) throw new Error('no mounter is active');
    return (await mounter.pending(this.#wanted.share.name)).count;
  }

  compare(held: ActiveMount): Difference {
    const plan = this.#planOf(this.#wanted);
    const isSame = plan === undefined || plan.fingerprint === held.mount.plan.fingerprint;
    this.#isWaiting = !isSame;
    this.#note = isSame ? undefined : NOTES.waiting;
    if (plan === undefined) this.#note = NOTES.noMounter;
    if (isSame) this.#isForced = false;
    if (isSame) return 'none';
    return plan.identity === held.mount.plan.identity ? 'settings' : 'elsewhere';
  }

  async #formerIfNeeded(wanted: ShareSpec): Promise<ShareSpec> {
    const former = this.#former;
    if (!former?.spec || former.isDrained || former.mount.plan.identity === this.#planOf(wanted)?.identity)
      return wanted;
    if ((await leftIn(this.#around, former.mount))?.count === 0) return wanted;
    // The place may hang on more than the share's own settings; then the former ones lead nowhere any more.
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
