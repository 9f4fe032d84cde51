/** Names in `shares[].users` and `shares[].read_only_users`: each must be a user of a server, or a group. */
import type { Config, ConfigProblem, Logins } from '../../contract/config.ts';
import { groupOf } from '../../sdk/access.ts';
import { joinPath } from '../../sdk/toml/path.ts';
import { suggestion } from '../schema/did-you-mean.ts';
import { isOn } from '../schema/schema.ts';
import type { ContributionEntry } from '../schema/schema.ts';

/** Nobody reads more of these. */
const MOST_SAID = 20;
const KEYS = ['users', 'read_only_users'] as const;

interface Named {
  readonly path: string;
  readonly name: string;
}

export function accessProblems(config: Config, entries: readonly ContributionEntry[]): ConfigProblem[] {
  const named = namesOf(config);
  if (named.length === 0) return [];
  const known = new KnownNames(entries.flatMap((entry) => loginsOf(entry, config)));
  const groups = Object.keys(config.groups ?? {}).map((name) => `@${name}`);
  return named
    .filter(({ name }) => !known.has(name) && !groups.includes(name))
    .slice(0, MOST_SAID)
    .map(({ path, name }) => ({ path, message: sentence(path, name, [...known.all, ...groups]) }));
}

function sentence(path: string, name: string, candidates: readonly string[]): string {
  const what = groupOf(name) === undefined ? 'a user of no server' : 'a group that [groups] does not have';
  const where =
    groupOf(name) === undefined
      ? '; users stand in smb.users and webdav.users'
      : '; groups stand in [groups]';
  return `${path} names "${name}", ${what}${suggestion(name, candidates) || where}`;
}

function namesOf({ shares, groups = {} }: Config): readonly Named[] {
  return [
    ...shares.flatMap((share, index) =>
      KEYS.flatMap((key) =>
        (share[key] ?? []).map((name, at) => ({ path: joinPath(['shares', index, key, at]), name })),
      ),
    ),
    ...Object.entries(groups).flatMap(([group, users]) =>
      users.map((name, at) => ({ path: joinPath(['groups', group, at]), name })),
    ),
  ];
}

class KnownNames {
  readonly all: readonly string[];
  readonly #exact: ReadonlySet<string>;
  readonly #folded: ReadonlySet<string>;
  readonly #hasOthers: boolean;

  constructor(logins: readonly Logins[]) {
    this.all = logins.flatMap(({ names }) => names).filter((name) => groupOf(name) === undefined);
    this.#hasOthers = logins.some(({ hasOthers }) => hasOthers === true);
    this.#exact = new Set(this.all.map((name) => name.normalize('NFC')));
    this.#folded = new Set(
      logins.filter(({ ignoresCase }) => ignoresCase).flatMap(({ names }) => names.map(folded)),
    );
  }

  has(name: string): boolean {
    if (this.#hasOthers && groupOf(name) === undefined) return true;
    return this.#exact.has(name.normalize('NFC')) || this.#folded.has(folded(name));
  }
}

function folded(name: string): string {
  return name.normalize('NFC').toLowerCase();
}

/** A third party's plugin that throws, or gives what is no list of names, has no users. */
function loginsOf(entry: ContributionEntry, config: Config): readonly Logins[] {
  const { contribution, thirdParty } = entry;
  if (contribution.logins === undefined || !isOn(entry, config)) return [];
  try {
    const { names, ignoresCase, hasOthers = false } = contribution.logins(config);
    return names.every((name) => typeof name === 'string') ? [{ names, ignoresCase, hasOthers }] : [];
  } catch (error) {
    if (thirdParty) return [];
    throw error;
  }
}
