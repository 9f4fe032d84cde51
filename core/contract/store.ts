/** What a plugin keeps over restarts and over its own versions. */

/** `ctx.use('store')`: each plugin sees its own documents alone. */
export interface StoreService {
  /**
   * The document of this name, `initial` where there is none yet. Names are like plugins' names. Rejects when the document was
   * written by a later version of the plugin, when `migrate` throws, or when the disk cannot be read: nothing is changed then. A
   * file that is no document any more is laid aside and named in the log.
   */
  open<T>(name: string, options: StoreOptions<T>): Promise<StoredDocument<T>>;
}

export interface StoreOptions<T> {
  /** Of the document's form, from 1 on. Raise it when what is kept is written in another way. */
  readonly version: number;
  /** JSON. */
  readonly initial: T;
  /** Makes this version's document of an earlier one's. Left out, an earlier one is taken as it is. */
  readonly migrate?: (value: unknown, version: number) => T;
}

export interface StoredDocument<T> {
  /** As it was saved last; a copy of its own at each look. */
  readonly value: T;
  /**
   * Resolves when all of it is on the disk; a loss of power leaves the former one or this one. Rejects for what is not JSON, for more
   * than 1 MiB, and when the disk refuses: the former one stays.
   */
  save(value: T): Promise<void>;
}
