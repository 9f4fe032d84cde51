/** Reads what `mountkeeper plugin … --json` prints. All texts come out on one line: a stranger has chosen some. */
import type { FoundPackage, PackageResult, Permission } from '../../contract/services.ts';
import { oneLine } from '../../sdk/one-line.ts';
import { PERMISSIONS } from '../permissions.ts';

const MOST_FOUND = 50;
const LONGEST_PROBLEM = 1_000;
/** What the command line says of itself before a reason. */
const BEFORE = /^mountkeeper: /;
const UNASKED = '; nobody is asked here, --yes agrees to it';
const STAYS = /^[a-z0-9-]+ stays at [^\s:]+: /;

type Parsed = Readonly<Record<string, unknown>>;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // It has said something else, which is no answer.
    return undefined;
  }
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? oneLine(value) : undefined;
}

/** Undefined for what is no answer; `stderr` holds warnings then. */
export function resultIn(stdout: string, stderr: string): PackageResult | undefined {
  const answer = parsed(stdout) as Parsed | undefined;
  const name = textIn(answer?.['name']);
  if (!answer || name === undefined) return undefined;
  const { permissions, unfit, warning, provenance } = answer;
  const asked: readonly unknown[] = Array.isArray(permissions) ? permissions : [];
  return {
    name,
    version: textIn(answer['version']),
    former: textIn(answer['former']),
    package: textIn(answer['package']),
    integrity: textIn(answer['integrity']),
    provenance: textIn(provenance),
    permissions: PERMISSIONS.filter((one: Permission) => asked.includes(one)),
    hasScripts: answer['scripts_not_run'] === true,
    warnings: [...[unfit, warning].flatMap((one) => textIn(one) ?? []), ...warningsIn(stderr)],
  };
}

/** Progress ends with an ellipsis; the rest of what a command says that came off is for people. */
function warningsIn(stderr: string): readonly string[] {
  return linesOf(stderr).filter((line) => !line.endsWith('…'));
}

function linesOf(stderr: string): readonly string[] {
  return stderr
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => oneLine(line, LONGEST_PROBLEM));
}

/** The command line's own words. */
export function problemIn(stderr: string, code: number | null): string {
  const said = warningsIn(stderr)
    .map((line) => line.replace(BEFORE, ''))
    .join('; ');
  return said === '' ? `the command ended with ${code === null ? 'a signal' : `code ${code}`}` : said;
}

/** What somebody has to agree to first. */
export function questionIn(stderr: string): string | undefined {
  const line = linesOf(stderr).find((one) => one.endsWith(UNASKED));
  return line?.slice(0, -UNASKED.length).replace(BEFORE, '').replace(STAYS, '');
}

export function foundIn(stdout: string): readonly FoundPackage[] | undefined {
  const answer = parsed(stdout);
  if (!Array.isArray(answer)) return undefined;
  return answer.slice(0, MOST_FOUND).flatMap((one: unknown) => {
    const { name, version, description } = (one ?? {}) as Parsed;
    const known = { name: textIn(name), version: textIn(version), description: textIn(description) ?? '' };
    return known.name === undefined || known.version === undefined ? [] : [known as FoundPackage];
  });
}
