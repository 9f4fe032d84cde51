/**
 * What plugins say about a document. A third party's word carries its name and is kept short, and whatever goes wrong
 * in it does not make a document invalid. It may refuse a change; it never keeps the daemon from its start.
 */
import type { Config, ConfigProblem } from '../../contract/config.ts';
import type { Services } from '../../contract/services.ts';
import { timeBox } from '../../platform/deadline.ts';
import { messageOf } from '../../platform/log/thrown.ts';
import { oneLine } from '../../sdk/one-line.ts';
import { joinPath } from '../../sdk/toml/path.ts';
import { isOn } from '../schema/schema.ts';
import type { Assembly, ContributionEntry } from '../schema/schema.ts';

const CHECK_TIMEOUT_MS = 10_000;
/** Third-party checks run at every start: a slow one delays the mounts. */
const THIRD_PARTY_CHECK_TIMEOUT_MS = 3_000;
/** Of one third party's plugin. */
const MOST_PROBLEMS = 20;

export type CheckServices = Pick<Services, 'processes' | 'secrets' | 'clock'>;

export interface Findings {
  readonly problems: readonly ConfigProblem[];
  readonly warnings: readonly string[];
}

export interface PluginCheckOptions {
  readonly assembly: Assembly;
  readonly services: CheckServices;
  /** Without a valid document there would be no mounts: what third parties refuse is a warning then. */
  readonly isStarting: boolean;
}

/** Asks the plugins that are on, all at the same time. */
export async function pluginFindings(config: Config, options: PluginCheckOptions): Promise<Findings> {
  const asked = options.assembly.entries.filter(
    (entry) => entry.contribution.check !== undefined && isOn(entry, config),
  );
  const found = await Promise.all(asked.map((entry) => checkedBy(entry, config, options)));
  return {
    problems: found.flatMap(({ problems }) => problems),
    warnings: found.flatMap(({ warnings }) => warnings),
  };
}

/** A third-party check that throws, hangs or returns garbage does not make a document invalid. */
async function checkedBy(
  entry: ContributionEntry,
  config: Config,
  { services, isStarting }: PluginCheckOptions,
): Promise<Findings> {
  const { contribution, thirdParty } = entry;
  const limitMs = thirdParty ? THIRD_PARTY_CHECK_TIMEOUT_MS : CHECK_TIMEOUT_MS;
  try {
    const checking = (async () => contribution.check?.(config, services))();
    const sentence = `no answer within ${limitMs / 1000} s`;
    const said = saidBy(entry, await timeBox(services.clock, limitMs, checking, sentence));
    const isWarned = (problem: ConfigProblem): boolean =>
      problem.isWarning === true || (thirdParty && isStarting);
    return {
      problems: said.filter((problem) => !isWarned(problem)),
      warnings: said.filter(isWarned).map(({ message }) => message),
    };
  } catch (error) {
    const problem = cannotCheck(entry, error);
    return thirdParty ? { problems: [], warnings: [problem.message] } : { problems: [problem], warnings: [] };
  }
}

/** What plugins say to a change by whom they need not trust. One that cannot say it refuses the change. */
export function untrustedFindings(
  entries: readonly ContributionEntry[],
  next: Config,
  current: Config,
): readonly ConfigProblem[] {
  return entries.flatMap((entry) => {
    try {
      return saidBy(entry, entry.contribution.checkUntrusted?.(next, current));
    } catch (error) {
      return [cannotCheck(entry, error)];
    }
  });
}

function cannotCheck({ owner, thirdParty }: ContributionEntry, error: unknown): ConfigProblem {
  return { message: `plugin ${owner} could not check the document: ${thrownBy(thirdParty, error)}` };
}

/** Of whatever a plugin has thrown: `Promise.reject()` throws undefined. */
export function thrownBy(thirdParty: boolean, error: unknown): string {
  return thirdParty ? oneLine(messageOf(error)) : messageOf(error);
}

/** Throws a sentence where it is no list of problems. */
function saidBy({ owner, thirdParty }: ContributionEntry, given: unknown): readonly ConfigProblem[] {
  if (!Array.isArray(given)) return [];
  const list = given as readonly unknown[];
  if (!thirdParty) return Array.from(list, problemOf);
  return Array.from(list.slice(0, MOST_PROBLEMS), (one) => {
    const { message, path, ...rest } = problemOf(one);
    return {
      ...rest,
      message: `plugin ${owner}: ${oneLine(message)}`,
      ...(path !== undefined && { path: oneLine(path) }),
    };
  });
}

/** Throws a sentence when the plugin returned something that is not a problem. */
function problemOf(given: unknown): ConfigProblem {
  const { isWarning, message, path } = (given ?? {}) as { [Key in keyof ConfigProblem]?: unknown };
  if (typeof message !== 'string')
    throw new Error('its answer holds what is no problem: each needs a message');
  const at = pathOf(path);
  return { message, ...(at !== undefined && { path: at }), ...(isWarning === true && { isWarning }) };
}

/** As Joi gives it, too: `['shares', 0, 'name']`. */
function pathOf(given: unknown): string | undefined {
  if (given === undefined || typeof given === 'string') return given;
  const isStep = (step: unknown): step is string | number =>
    typeof step === 'string' || Number.isInteger(step);
  if (!Array.isArray(given) || !given.every(isStep))
    throw new Error('its answer holds what is no problem: its path is no text');
  return joinPath(given);
}
