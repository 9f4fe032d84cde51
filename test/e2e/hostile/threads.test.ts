// @load alone
/** A plugin that takes all processes and threads that it can get leaves some for rclone. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { unlessRoot } from '../../runner/skips.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { letOthersEnter } from '../../support/platform/folder-access.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { inState, place, source } from '../../support/plugins/strangers.ts';

/** Fewer than there may be processes, and of each so many threads: more than a thousand, and never many more. */
const [CHILDREN, THREADS] = [10, 250];
/** Node makes its threads at once, or ends where it cannot. */
const CHILD = "require('fs').stat('/', () => console.log('up')); setInterval(() => undefined, 1_000);";
const BODY = `const outcomes = [];
  const env = { UV_THREADPOOL_SIZE: '${THREADS}' };
  ctx.route({ method: 'GET', path: '/outcomes', handler: () => outcomes });
  ctx.route({ method: 'GET', path: '/start', handler: () => {
    for (let i = 0; i < ${CHILDREN}; i += 1) {
      const child = spawn(process.execPath, ['-e', ${JSON.stringify(CHILD)}],
        { env, stdio: ['ignore', 'pipe', 'ignore'] });
      let said = '';
      const say = (what) => { if (said === '') outcomes.push(said = what); };
      child.stdout.once('data', () => say('up'));
      child.once('error', () => say('refused'));
      child.once('exit', () => say('refused'));
    }
    return {};
  } });`;

describe('a plugin that takes all threads that it can get', { skip: unlessRoot }, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  const sections = () => ({
    plugins: { dirs: [scratch.path('plugins')] },
    'plugins.takes': { enabled: true },
  });
  before(async () => {
    scratch = await createScratch('threads');
    await letOthersEnter(scratch.root);
    const nas = await Nas.create(scratch, { files: { 'a.bin': 1_000 } });
    await place(scratch, 'takes', source('takes', BODY), { permissions: ['read-status', 'processes'] });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'files', connection: 'nas' }],
      sections: sections(),
    });
    await daemon.start(60_000);
    await daemon.healthy();
    await inState(daemon, 'takes', 'active');
  });
  after(() => scratch.close());

  it('gets no more than its user may have, and a share is mounted beside it', async () => {
    await daemon.get('/ext/takes/start');
    const told = async (): Promise<string[]> => (await daemon.get<string[]>('/ext/takes/outcomes')).body;
    await until('each has come up or was refused', async () => (await told()).length === CHILDREN, {
      timeoutMs: 15_000,
    }).catch(() => undefined);
    // Now and then one waits for ever for a thread that it did not get: that is none that has come up.
    const outcomes = await told();
    assert.ok(outcomes.includes('refused'), outcomes.join());
    const threads = Number(await readFile('/proc/sys/kernel/threads-max', 'utf8'));
    const most = Math.min(1_000, threads / 20) / THREADS;
    const up = outcomes.filter((one) => one === 'up').length;
    assert.ok(up < most, `${up} of ${CHILDREN} have come up`);
    await daemon.writeConfig(
      daemon.text({
        shares: ['files', 'more'].map((name) => ({ name, connection: 'nas' })),
        sections: sections(),
      }),
    );
    await daemon.healthy(['files', 'more'], 60_000);
    await inState(daemon, 'takes', 'active');
  });
});
