/**
 * A share's health: enters states by the machine's rules and tells plugins, in the order in which things
 * happened.
 */
import { PENDING, nextState } from './state-machine.ts';
import type { ShareEvent, ShareState } from './state-machine.ts';
import type { HookRunner } from '../plugins/hooks.ts';
import { timeBox } from '../sdk/time-box.ts';
import type { RunnerEnvironment } from './environment.ts';

const FAREWELL_DEADLINE_MS = 5_000;

export class ShareHealth {
  readonly #share: string;
  readonly #around: RunnerEnvironment;
  #state: ShareState = PENDING;
  #told: Promise<void> = Promise.resolve();

  constructor(share: string, around: RunnerEnvironment) {
    this.#share = share;
    this.#around = around;
  }

  get state(): ShareState {
    return this.#state;
  }

  enter(event: ShareEvent): void {
    const from = this.#state.health;
    this.#state = nextState(this.#state, event);
    const to = this.#state.health;
    const reason = this.#state.health === 'failed' ? this.#state.reason : null;
    if (reason !== null) this.#around.log.warn({ share: this.#share, reason }, 'share failed');
    this.#around.onChange();
    const remote = event.kind === 'fail' ? event.remote : undefined;
    if (from !== to)
      this.tell((hooks) =>
        hooks.observe('shareHealthChanged', {
          share: this.#share,
          from,
          to,
          reason,
          ...(remote && { remote }),
        }),
      );
  }

  /** Holds nothing up: a plugin that takes its time delays other news to plugins, never the share. */
  tell(call: (hooks: HookRunner) => Promise<void>): void {
    this.#told = this.#told
      .then(() => call(this.#around.hooks()))
      .catch((error: unknown) => {
        this.#around.log.error({ share: this.#share, err: error }, 'plugins not told');
      });
  }

  /** Until plugins have heard everything, within limits. */
  async farewell(): Promise<void> {
    await timeBox(this.#around.clock, FAREWELL_DEADLINE_MS, this.#told).catch(() => undefined);
  }
}
