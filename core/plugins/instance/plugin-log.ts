/**
 * A plugin's logger, whose level can change while the plugin is up. pino leaves the loggers that were made of it at the
 * level it had then: they are remembered, and follow.
 */
import type { Logger } from '../../contract/platform.ts';

export class PluginLog {
  readonly log: Logger;
  readonly #children = new Set<WeakRef<Logger>>();
  readonly #gone = new FinalizationRegistry<WeakRef<Logger>>((child) => this.#children.delete(child));

  constructor(parent: Logger, plugin: string) {
    this.log = parent.child({ plugin });
    // Loggers made of those inherit it.
    this.log.onChild = (child: Logger) => {
      const reference = new WeakRef(child);
      this.#children.add(reference);
      this.#gone.register(child, reference);
    };
  }

  setLevel(level: string): void {
    if (this.log.level === level) return;
    for (const child of this.#children) {
      const log = child.deref();
      if (log) log.level = level;
    }
    this.log.level = level;
  }
}
