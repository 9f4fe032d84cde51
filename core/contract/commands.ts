/** Contract of commands: what may be sent to the supervisor and to other receivers; and of events between plugins. */
import type { Schema } from 'joi';
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

/** Open; by full name, such as `garden:watered`, the type of the value. */
// eslint-disable-next-line typescript/no-empty-object-type
export interface Events {}

/** An event that the plugin gives. */
export interface EventDeclaration<K extends keyof Events = keyof Events> {
  /** The plugin's own name, a colon, and lower-case letters, digits and hyphens. */
  readonly name: K;
  /** One line: when it is given. */
  readonly summary: string;
  /** Of the value: plain data, 16,384 characters at most. Checked whenever the event is given. */
  readonly value: Schema<Events[K]>;
}

/**
 * Tells every plugin that listens, and returns at once. Never throws: a value that does not fit is named in the
 * log, and nobody is told.
 */
export type GiveEvent<K extends keyof Events> = (value: Events[K]) => void;
