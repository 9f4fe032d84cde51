/** What keeps the process of a plugin alive, by Node's own account: what the plugin has opened and not closed. */
import { createClock } from '../../../platform/clock.ts';

const WORDS: Readonly<Record<string, string>> = {
  Timeout: 'a timer',
  TCPServerWrap: 'a server',
  TCPSocketWrap: 'a connection',
  UDPWrap: 'a socket',
  ProcessWrap: 'a child process',
  FSEventWrap: 'a watcher',
  StatWatcher: 'a watcher',
};
/** Sockets and children need a moment to close. */
const MOMENT_MS = 200;

export class OpenThings {
  /** Of the process itself, before the plugin came. */
  readonly #before = counted();

  /** In words; nothing where all was closed. */
  async left(): Promise<readonly string[]> {
    if (this.#more().length === 0) return [];
    await createClock().sleep(MOMENT_MS);
    return this.#more();
  }

  #more(): readonly string[] {
    const more = [...counted()].filter(([kind, count]) => count > (this.#before.get(kind) ?? 0));
    return [...new Set(more.flatMap(([kind]) => WORDS[kind] ?? []))].sort();
  }
}

function counted(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}
