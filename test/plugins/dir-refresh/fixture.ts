/** Living shares in memory whose refreshes the test ends. */
import type { LiveShare, RefreshResult } from 'mountkeeper';
import { FakeMount, planOf, spec } from '../../support/shares/fake-shares.ts';

export class SlowMount extends FakeMount {
  readonly waiting: {
    readonly path: string;
    readonly recursive: boolean;
    end(result: RefreshResult | Error): void;
  }[] = [];

  override refreshDirectories(
    path: string,
    options?: { readonly recursive: boolean; readonly signal: AbortSignal },
  ): Promise<RefreshResult> {
    this.calls.push(`refresh ${path}`);
    return new Promise((resolve, reject) => {
      options?.signal.addEventListener('abort', () => reject(options.signal.reason as Error), { once: true });
      this.waiting.push({
        path,
        recursive: options?.recursive === true,
        end: (result) => (result instanceof Error ? reject(result) : resolve(result)),
      });
    });
  }

  get refreshes(): number {
    return this.calls.filter((call) => call.startsWith('refresh')).length;
  }

  /** Ends the refresh that has waited longest. */
  finish(result: RefreshResult | Error = { ok: 1, failed: [] }): void {
    const call = this.waiting.shift();
    if (!call) throw new Error(`no refresh of ${this.shareName} is under way`);
    call.end(result);
  }
}

export interface TestShare {
  mount: SlowMount | undefined;
  remoteAnswers: boolean | undefined;
  readonly live: LiveShare;
  readonly made: SlowMount;
}

/** `options`: those of the connection, in place of what it has. */
export function testShare(name: string, options: Readonly<Record<string, string>> = {}): TestShare {
  const it = spec(name);
  const placed = {
    ...it,
    connection: { ...it.connection, options: { ...it.connection.options, ...options } },
  };
  const made = new SlowMount(planOf(spec(name)), name);
  const share: TestShare = {
    mount: made,
    remoteAnswers: true,
    made,
    get live(): LiveShare {
      return { spec: placed, health: 'healthy', mount: share.mount, remoteAnswers: share.remoteAnswers };
    },
  };
  return share;
}
