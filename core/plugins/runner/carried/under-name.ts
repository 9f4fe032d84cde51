/** Sentences of a stranger's that people read among the daemon's own: each is under the plugin's name. */
import { isTable } from '../../../sdk/toml/document.ts';

/** They stand on the overview, and are looked up in the reader's language. */
const MOST_NOTICES = 20;
const LONGEST_NOTICE = 300;

/** On one line. */
export function underName(plugin: string, text: string): string {
  const line = text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').trim();
  return line.startsWith(`${plugin}: `) ? line : `${plugin}: ${line}`;
}

/** What a plugin answers `collectNotices` with; the first 20, and what is no notice as it is: it is refused later. */
export function noticesUnderName(plugin: string, answer: unknown): unknown {
  if (!Array.isArray(answer)) return answer;
  return answer.slice(0, MOST_NOTICES).map((one: unknown) => {
    const message = isTable(one) ? one['message'] : undefined;
    if (typeof message !== 'string') return one;
    return { ...(one as object), message: underName(plugin, message.slice(0, LONGEST_NOTICE)) };
  });
}
