/** One option of a backend, as reported by `rclone config providers`. */
export interface ProviderOption {
  readonly name: string;
  readonly isPassword: boolean;
  readonly isSensitive: boolean;
}

/** One backend of the installed rclone. */
export interface Provider {
  /** Every name that `type` may have. */
  readonly types: readonly string[];
  readonly options: readonly ProviderOption[];
}

interface RawOption {
  Name?: string;
  IsPassword?: boolean;
  Sensitive?: boolean;
}
interface RawProvider {
  Name?: string;
  Prefix?: string;
  Aliases?: string[] | null;
  Options?: RawOption[] | null;
}

/** Comparing takes time that grows with the length; no name in rclone is longer. */
const LONGEST_COMPARED = 64;

/** Options that every backend accepts, although older versions do not list them. */
const COMMON_OPTIONS = ['description', 'encoding'];

export function parseProviders(json: string): readonly Provider[] {
  return (JSON.parse(json) as RawProvider[]).map((raw) => ({
    types: [
      ...new Set(
        [raw.Name, raw.Prefix, raw.Name?.replaceAll(' ', ''), ...(raw.Aliases ?? [])].filter(
          (type) => typeof type === 'string' && type !== '',
        ),
      ),
    ] as string[],
    options: (raw.Options ?? []).map((option) => ({
      name: option.Name ?? '',
      isPassword: option.IsPassword === true,
      isSensitive: option.Sensitive === true,
    })),
  }));
}

export function providerOf(providers: readonly Provider[], type: string): Provider | undefined {
  return providers.find((provider) => provider.types.includes(type));
}

/** Problems with a connection's type and option names; one sentence each. */
export function connectionProblems(
  providers: readonly Provider[],
  type: string,
  optionNames: readonly string[],
): readonly { option?: string; message: string }[] {
  const provider = providerOf(providers, type);
  if (!provider) {
    const all = providers.flatMap((one) => one.types);
    return [
      {
        message:
          `the installed rclone knows no type "${type}"${suggestion(type, all)}; ` +
          '"rclone help backends" lists what it knows',
      },
    ];
  }
  const known = [...new Set([...provider.options.map((option) => option.name), ...COMMON_OPTIONS])];
  return optionNames
    .filter((name) => !known.includes(name))
    .map((option) => ({
      option,
      message:
        `"${option}" is not an option of the type ${type}${suggestion(option, known)}; ` +
        `"rclone help backend ${type}" lists them`,
    }));
}

export function suggestion(word: string, candidates: readonly string[]): string {
  if (word.length > LONGEST_COMPARED) return '';
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(word.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  return best !== undefined && best.distance <= Math.max(1, Math.floor(word.length / 3))
    ? ` (did you mean "${best.candidate}"?)`
    : '';
}

/** Edit distance: changes, insertions, deletions and swaps of adjacent characters. */
function editDistance(a: string, b: string): number {
  const cells = Array.from({ length: a.length + 1 }, (_, i) =>
    Array.from({ length: b.length + 1 }, (__, j) => (i === 0 ? j : i)),
  );
  const at = (i: number, j: number): number => cells[i]?.[j] ?? Infinity;
  for (let i = 1; i <= a.length; i += 1) {
    for (let j = 1; j <= b.length; j += 1) {
      const change = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && a.slice(i - 2, i) === `${b[j - 1]}${b[j - 2]}`;
      const row = cells[i] ?? [];
      row[j] = Math.min(change, at(i - 1, j) + 1, at(i, j - 1) + 1, isSwap ? at(i - 2, j - 2) + 1 : Infinity);
    }
  }
  return at(a.length, b.length);
}
