/** The contract of commands: what may be sent to whoever steers the shares. */
import type { LoadedConfig } from './config.ts';
import type { NotificationEvent } from './notifications.ts';

/**
 * Open: what can be sent to the supervisor. `send` resolves when the command is accepted, not when it is
 * done.
 */
export interface Commands {
  reload: { args: [next: LoadedConfig]; result: void };
  /** Texts as they came; a value that cannot be read is logged and changes nothing. */
  bwlimit: { args: [limit: { up: string; down: string }]; result: void };
  reconnect: { args: [share: string]; result: void };
  /**
   * For whoever delivers notifications: the one plugin that handles it, and all that tap the hook
   * `notification`.
   */
  notify: { args: [event: NotificationEvent]; result: void };
}
