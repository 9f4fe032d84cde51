/**
 * The plan of a share that a former daemon left mounted, by the names that this version gives: a former one left out
 * some options that say where a connection leads.
 */
import type { MountPlan } from 'mountkeeper';
import { takeUpIdentity } from '../cache/identity.ts';
import { specOf } from '../lifecycle/mount-plan.ts';
import type { MountingTools } from '../lifecycle/tools.ts';
import type { StackNotes } from './stack-record.ts';

/**
 * Unchanged where the settings of now lead elsewhere than the mount. Notes that its cache belongs to where they lead,
 * so that an option which is changed from now on is seen. Never rejects.
 */
export async function adoptedPlan(
  shareName: string,
  { plan, cacheDir }: Pick<StackNotes, 'plan' | 'cacheDir'>,
  tools: MountingTools,
): Promise<MountPlan> {
  const spec = specOf(shareName, tools.config());
  if (!spec) return plan;
  const { lesser, mount, place } = tools.plans.renewed(spec);
  if (plan.identity !== mount.identity && plan.identity !== lesser?.mount.identity) return plan;
  try {
    if (!(await takeUpIdentity(cacheDir, place, lesser?.place))) return plan;
  } catch (error) {
    tools.log.warn({ share: shareName, err: error }, 'place of the cache not noted');
    return plan;
  }
  const isAsPlanned = plan.fingerprint === lesser?.mount.fingerprint;
  return {
    ...plan,
    identity: mount.identity,
    place,
    fingerprint: isAsPlanned ? mount.fingerprint : plan.fingerprint,
  };
}
