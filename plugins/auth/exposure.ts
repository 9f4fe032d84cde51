/** Warns when nobody is asked for a password although people have access who should not; refuses what leads there. */
import { isAnybodyAsked, isLoopback, onlyInFile } from 'mountkeeper';
import type { Config, ConfigProblem, Notice, WebConfig } from 'mountkeeper';
import { firstProblem } from './installers.ts';

export interface Exposure {
  readonly notice: Notice;
  /** The log message. */
  readonly line: string;
}

/**
 * Undefined when a password is set, or when only users of this machine have access and the daemon has no
 * more rights than they.
 */
export function exposureOf(web: WebConfig, isRoot: boolean): Exposure | undefined {
  if (isAnybodyAsked(web)) return undefined;
  if (!isLoopback(web.listen))
    return exposure(
      'the web server is open to other machines without a password',
      `The web server listens on ${web.listen} and asks for no password: ` +
        'everyone who reaches this machine can change the configuration. ' +
        'Set web.password, or web.listen = "127.0.0.1".',
    );
  if (!isRoot) return undefined;
  return exposure(
    'every local user may change the configuration of this daemon, which runs as root without a password',
    'No password is set and the daemon runs as root: ' +
      `every local user of this machine may change its configuration, over ${web.listen} port ` +
      `${String(web.port)}. Set web.password; the command line of root does not need it.`,
  );
}

function exposure(line: string, message: string): Exposure {
  return { line, notice: { level: 'warning', message } };
}

/**
 * The sentence that refuses a change after which nobody is asked any more, though no password was taken away.
 * Whoever empties `web.password` says that; with the last user or token it would be a side effect.
 */
export function openingProblem(now: WebConfig, next: WebConfig): string | undefined {
  return now.password === '' && isAnybodyAsked(now) && !isAnybodyAsked(next)
    ? 'this takes the last user or token away, and then everybody could change everything; set web.password first'
    : undefined;
}

const ENABLED = 'plugins.auth.enabled';

/**
 * A document over HTTP does not open to everybody what `[web]` keeps for some. Nor does it make who sends it the
 * administrator who may bring code to this machine: whoever reaches the page could set the first password.
 */
export function checkUntrusted(next: Config, current: Config): readonly ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  if (isSwitchedOff(next) && !isSwitchedOff(current) && isAnybodyAsked(current.web))
    problems.push({ path: ENABLED, message: onlyInFile(`${ENABLED} cannot be switched off over HTTP`) });
  const first = firstProblem(next, current, isSwitchedOff(current));
  if (first !== undefined) problems.push({ path: 'web', message: first });
  return problems;
}

/** Of a file that names people, and lets everybody in all the same. */
export function switchedOffProblems(config: Config): readonly ConfigProblem[] {
  if (!isSwitchedOff(config) || !isAnybodyAsked(config.web)) return [];
  const message =
    'plugins.auth.enabled is false, so that nobody is asked for the passwords and tokens of [web], and everybody who ' +
    'reaches the web server can change everything';
  return [{ path: ENABLED, message, isWarning: true }];
}

function isSwitchedOff({ plugins }: Config): boolean {
  return (plugins['auth'] as { readonly enabled?: boolean } | undefined)?.enabled === false;
}
