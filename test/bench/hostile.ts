/**
 * How long others wait while plugins of strangers do harm: every hostile one, one after another, beside a client that
 * asks for the status all the time from a thread of its own.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { ALL, SLOW } from '../support/plugins/hostile-plugins.ts';
import { HostileTrial } from '../support/plugins/hostile-trial.ts';
import { median, ms } from './figures.ts';
import type { Figure } from './figures.ts';
import type { Asked } from './asking-worker.ts';

export async function benchHostile(scratch: Scratch): Promise<Figure[]> {
  const trial = await HostileTrial.start(scratch);
  const asking = new Worker(new URL('asking-worker.js', import.meta.url), {
    workerData: { port: trial.daemon.port, path: '/api/status' },
  });
  const plugins = [...ALL, SLOW].flatMap((group) => Object.entries(group));
  const { tookMs, failed } = await (async () => {
    try {
      for (const [name, one] of plugins) await trial.play({ [name]: one });
      const asked = once(asking, 'message');
      asking.postMessage('end');
      return (await asked)[0] as Asked;
    } finally {
      await asking.terminate();
    }
  })();
  await trial.daemon.stop();
  const sorted = tookMs.toSorted((a, b) => a - b);
  return [
    {
      what: `/api/status beside ${plugins.length} hostile plugins, one after another: the slowest answer`,
      ours: `${ms(sorted.at(-1) ?? Number.NaN)}, ${failed} of ${sorted.length} failed`,
      beside: `${ms(median(sorted))} (median)`,
      ratio: '-',
      aim: '< 150 ms, none failed',
      note:
        'A client asks every 20 ms. Each plugin is laid, switched on, told of by name and cause, mended and switched ' +
        'off again while the daemon runs.',
    },
  ];
}
