/**
 * What the configuration says that nobody would know any more, once a plugin is gone or has another version. A section
 * or a key of shares that no plugin knows keeps the daemon from starting.
 */
import type { ConfigCheck } from '../../../contract/config.ts';
import type { ContributionEntry } from '../../../config/service.ts';
import { openOffline } from '../../offline.ts';

/** Nobody reads more of them. */
const MOST_SAID = 5;

/**
 * The sentences that the document is not wrong by now, and would be without the plugin; with `next`, with that in its
 * place. None where it is wrong already for the same reasons, or is not there.
 */
async function newProblems(
  plugin: string,
  next: ContributionEntry | undefined,
  configFile: string,
): Promise<readonly string[]> {
  const offline = await openOffline(configFile);
  try {
    const now = new Set(messagesOf(await offline.checkFile((entries) => entries)));
    const then = await offline.checkFile((entries) => [
      ...entries.filter(({ owner }) => owner !== plugin),
      ...(next ? [next] : []),
    ]);
    return messagesOf(then).filter((message) => !now.has(message));
  } finally {
    await offline.close();
  }
}

function messagesOf(check: ConfigCheck): readonly string[] {
  return check.ok ? [] : check.problems.map(({ message }) => message);
}

/** Rejects with the sentence that names the keys, and ends with what to do. */
export async function refuseLeftKeys(
  plugin: string,
  next: ContributionEntry | undefined,
  configFile: string,
): Promise<void> {
  const problems = await newProblems(plugin, next, configFile);
  if (problems.length === 0) return;
  const more = problems.length > MOST_SAID ? `, and ${String(problems.length - MOST_SAID)} more` : '';
  throw new Error(
    `${next ? 'with this version' : `without ${plugin}`} the daemon would not start, ` +
      `as ${configFile} would be wrong: ${problems.slice(0, MOST_SAID).join('; ')}${more}; change it first`,
  );
}
