/** Helpers whose course the test decides, and shares to go with them. */
import { pino } from 'pino';
import { createManualClock } from 'mountkeeper/testing';
import type { CacheAccess, LiveShare } from 'mountkeeper';
import { FakeMount, planOf, spec } from '../../support/shares/fake-shares.ts';
import type { WarmupConfig } from '../../../plugins/warmup/config.ts';
import type { StartHelper } from '../../../plugins/warmup/scheduler/worker-process.ts';
import { NO_COUNTS } from '../../../plugins/warmup/job-description.ts';
import type { Counts, Ending, Order, Report, Terms } from '../../../plugins/warmup/job-description.ts';
import { WarmupScheduler } from '../../../plugins/warmup/scheduler/scheduler.ts';
import type { Task } from '../../../plugins/warmup/scheduler/task.ts';

export class OpenMount extends FakeMount {
  cacheAccess: () => CacheAccess | undefined = () => ({
    module: '/module.js',
    parameters: { name: this.shareName },
  });
}

export interface FakeHelper {
  readonly order: Order;
  terms: Terms;
  readonly refreshed: number[];
  isStopped: boolean;
  hear(report: Report): void;
  counts(phase: 'listing' | 'caching', counts: Partial<Counts>): void;
  end(ending: Partial<Ending>): void;
}

export interface TestShare {
  mount: OpenMount | undefined;
  remoteAnswers: boolean | undefined;
  readonly live: LiveShare;
}

/** `name` or `name@connection`. */
export function openShare(text: string): TestShare {
  const [name = '', connection = 'nas'] = text.split('@');
  const it = spec(name);
  const ofLine = { ...it, connection: { ...it.connection, name: connection } };
  const share: TestShare = {
    mount: new OpenMount(planOf(spec(name)), name),
    remoteAnswers: true,
    get live(): LiveShare {
      return {
        spec: ofLine,
        health: share.mount === undefined ? 'pending' : 'healthy',
        mount: share.mount,
        remoteAnswers: share.remoteAnswers,
      };
    },
  };
  return share;
}

export function newMount(share: TestShare, name: string): void {
  share.mount = new OpenMount(planOf(spec(name)), name);
}

export function createKit(
  names: readonly string[],
  rules: WarmupConfig['rules'],
  options: { readonly auto?: boolean; readonly former?: ReadonlyMap<string, Task> } = {},
) {
  const clock = createManualClock();
  const shares = new Map(names.map((text) => [text.split('@')[0] ?? '', openShare(text)] as const));
  const config: WarmupConfig = {
    auto: options.auto ?? true,
    warmup_schedule: '',
    timezone: '',
    concurrency: 16,
    rules,
  };
  const started: FakeHelper[] = [];
  const saved: (readonly Task[])[] = [];
  const start: StartHelper = (order, onReport) => {
    let settle: (ending: Ending) => void = () => undefined;
    const ended = new Promise<Ending>((resolve) => {
      settle = resolve;
    });
    const helper: FakeHelper = {
      order,
      terms: order,
      refreshed: [],
      isStopped: false,
      hear: onReport,
      counts: (phase, counts) => onReport({ kind: 'counts', phase, counts: { ...NO_COUNTS, ...counts } }),
      end: (ending) => settle({ outcome: 'complete', reason: '', ...ending }),
    };
    started.push(helper);
    return {
      ended,
      tell: (said) =>
        void ('refreshed' in said ? helper.refreshed.push(said.refreshed) : (helper.terms = said)),
      stop: () => {
        helper.isStopped = true;
        settle({ outcome: 'stopped', reason: 'stopped' });
      },
    };
  };
  const station = new WarmupScheduler({
    clock,
    log: pino({ level: 'silent' }),
    shares: () => [...shares.values()].map((share) => share.live),
    config: () => config,
    folder: '/nowhere',
    start,
    former: options.former ?? new Map(),
    save: (tasks) => void saved.push(tasks),
  });
  const pass = async (ms = 0): Promise<void> => {
    await clock.advance(ms);
    station.look();
    await clock.advance(0);
  };
  const states = (): readonly string[] => station.rules.map((task) => task.state);
  const share = (name: string): TestShare => shares.get(name) as TestShare;
  const last = (): FakeHelper => started.at(-1) as FakeHelper;
  return { clock, config, station, started, saved, pass, states, share, last };
}
