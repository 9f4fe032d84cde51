/** Contract of commands: what may be sent to the supervisor and to other receivers. */
import type { LoadedConfig } from './config.ts';
import type { NotificationEvent } from './notifications.ts';

/**
 * Open: commands that can be sent. `send` resolves when the receiver has accepted the command, not when it
 * is done.
 */
export interface Commands {
  /** Applies a document that was checked. The core's own: others go through the service `config`. */
  reload: { args: [next: LoadedConfig]; result: void };
  /** The limits as text, as the user gave them; one that cannot be parsed is logged and changes nothing. */
  bwlimit: { args: [limit: { up: string; down: string }]; result: void };
  /** Mounts a share again, after its files have been uploaded. */
  reconnect: { args: [share: string]; result: void };
  /** For whoever delivers notifications: all plugins that tap the hook `notification`. */
  notify: { args: [event: NotificationEvent]; result: void };
}
