/**
 * Every reason for which a test may be left out, and on which machines. `npm test` lists what was left out
 * and fails when the reason is not here, or does not hold on this machine: a test that nobody runs finds
 * nothing.
 */
import { existsSync } from 'node:fs';
import { networkInterfaces } from 'node:os';

export interface Machine {
  /** Continuous integration: what the set-up brings has to be there, and the tests run as root. */
  readonly isCi: boolean;
  readonly isRoot: boolean;
  readonly hasFuse: boolean;
  readonly hasLoopDevices: boolean;
  readonly hasIpv6: boolean;
  readonly hasControlGroups: boolean;
  /** An IPv4 address that is not loopback. */
  readonly hasNetwork: boolean;
}

/** The folder of control groups of version 2; undefined where there is none. */
export const CONTROL_GROUPS = ['/sys/fs/cgroup/unified', '/sys/fs/cgroup'].find((path) =>
  existsSync(`${path}/cgroup.procs`),
);

export interface SkipRule {
  readonly reason: string;
  readonly isAllowed: (machine: Machine) => boolean;
}

/** By a name that says what is missing, or why the test says nothing new here. */
export const SKIPS = {
  root: { reason: 'needs root', isAllowed: ({ isCi, isRoot }) => !isCi && !isRoot },
  hangingMount: {
    reason: 'needs root and /dev/fuse',
    isAllowed: ({ isCi, isRoot, hasFuse }) => !isCi && !(isRoot && hasFuse),
  },
  // What lends devices to this machine may refuse to, though it has the file that they are asked for by.
  loopDevice: {
    reason: 'needs a loop device',
    isAllowed: ({ isCi, hasLoopDevices }) => !isCi || !hasLoopDevices,
  },
  ipv6: { reason: 'needs IPv6', isAllowed: ({ hasIpv6 }) => !hasIpv6 },
  network: { reason: 'needs an address beside loopback', isAllowed: ({ hasNetwork }) => !hasNetwork },
  // The set-up brings it where it may.
  chromium: { reason: 'needs Chromium', isAllowed: ({ isCi, isRoot }) => !isCi && !isRoot },
  controlGroups: {
    reason: 'needs root and control groups of version 2',
    isAllowed: ({ isRoot, hasControlGroups }) => !(isRoot && hasControlGroups),
  },
  blockMap: { reason: 'needs a file system that tells which blocks were written', isAllowed: () => true },
} as const satisfies Readonly<Record<string, SkipRule>>;

const RULES: ReadonlyMap<string, SkipRule> = new Map(Object.values(SKIPS).map((rule) => [rule.reason, rule]));

/** What this machine has and lacks, as the rules of `SKIPS` ask. */
export function thisMachine(): Machine {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return {
    isCi: !['', '0', 'false'].includes(process.env['CI'] ?? ''),
    isRoot: process.getuid?.() === 0,
    hasFuse: existsSync('/dev/fuse'),
    hasLoopDevices: existsSync('/dev/loop-control'),
    hasNetwork: addresses.some(({ family, internal }) => family === 'IPv4' && !internal),
    hasControlGroups: CONTROL_GROUPS !== undefined,
    hasIpv6: addresses.some(({ address }) => address === '::1'),
  };
}

/** For the `skip` option of a test: the reason, or false where nothing is missing. */
export const unlessRoot: string | false = process.getuid?.() !== 0 && SKIPS.root.reason;
export const unlessControlGroups: string | false =
  (process.getuid?.() !== 0 || CONTROL_GROUPS === undefined) && SKIPS.controlGroups.reason;

/** Undefined when it is right that a test was left out, or else a sentence. `true`: no reason was given. */
export function wrongSkip(reason: string | true, machine: Machine): string | undefined {
  if (reason === true) return 'it was left out without a reason';
  const rule = RULES.get(reason);
  if (!rule) return `it was left out for a reason that is not in test/runner/skips.ts: '${reason}'`;
  if (rule.isAllowed(machine)) return undefined;
  return (
    `it was left out with '${reason}', which has to be there ` +
    `${machine.isCi ? 'in continuous integration' : 'on this machine'}`
  );
}
