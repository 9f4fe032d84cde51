/**
 * Documents on trial: taken back by the daemon when their page is cut off or a share fails, and only then.
 */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { ConfigChanges } from '../../core/contract/config-changes.ts';
import { createManualClock } from '../../core/testing/manual-clock.ts';
import type { ManualClock } from '../../core/testing/manual-clock.ts';
import { until } from '../support/platform/wait.ts';
import { createApi, SAMPLE } from './fixture.ts';
import type { ApiFixture } from './fixture.ts';

const TEXT = `# ours\n${SAMPLE}\n[web]\npassword = "correct horse"\n`;
const interval = (text: string, seconds: number): string =>
  `${text}\n[supervisor]\npoll_interval = "${seconds}s"\n`;

let api: ApiFixture;
let clock: ManualClock;

const changes = () => api.host.service('configChanges') as ConfigChanges;

function withApi(): void {
  beforeEach(async () => {
    clock = createManualClock();
    api = await createApi({ toml: TEXT, clock });
  });
  afterEach(() => api.close());
}

describe('a document on trial', () => {
  withApi();

  const submit = (text: string) => changes().submit({ text, by: 'page', onTrial: true });
  const takenBack = () =>
    until(
      'the former text is back',
      async () => (await api.fileText()) === TEXT && changes().history()[0]?.by === 'revert',
      { timeoutMs: 5_000 },
    );
  const healths = (...list: readonly ('healthy' | 'failed')[]): void => {
    api.publish([
      { name: 'photos', health: list[0] ?? 'healthy' },
      { name: '照片 2024', health: list[1] ?? 'healthy' },
    ]);
  };

  it('is taken back when its page does not reach the daemon any more', async () => {
    const { version } = await submit(interval(TEXT, 3));
    assert.equal(changes().trial?.version, version);
    await clock.advance(59_000);
    assert.equal(await api.fileText(), interval(TEXT, 3));
    await clock.advance(2_000);
    await takenBack();
    assert.equal(await api.fileText(), TEXT);
    assert.equal(changes().trial, undefined);
    assert.match(changes().history()[0]?.by ?? '', /revert/);
    const [newest] = changes().history();
    assert.deepEqual([newest?.by, newest?.summary], ['revert', 'supervisor.poll_interval: "3s" → "2s"']);
    assert.equal(api.sent.filter(({ command }) => command === 'reload').length, 2);
  });

  it('stays when its page reached the daemon and no share failed', async () => {
    healths('healthy', 'failed');
    const { version } = await submit(interval(TEXT, 3));
    assert.equal(changes().reached(version), true);
    await clock.advance(61_000);
    assert.equal(await api.fileText(), interval(TEXT, 3), 'what had failed before is no reason');
    assert.equal(changes().trial, undefined);
  });

  it('is taken back when a share fails that was healthy, unless somebody keeps it', async () => {
    healths('healthy', 'healthy');
    const first = await submit(interval(TEXT, 3));
    changes().reached(first.version);
    healths('failed', 'healthy');
    assert.deepEqual(changes().trial?.failed, ['photos']);
    await clock.advance(61_000);
    await takenBack();
    assert.match((await changes().revert(first.version)).message, /not on trial/);
    assert.equal(await api.fileText(), TEXT);
    healths('healthy', 'healthy');
    const second = await submit(interval(TEXT, 3));
    healths('failed', 'healthy');
    assert.equal(changes().confirm(second.version), true);
    await clock.advance(61_000);
    assert.equal(await api.fileText(), interval(TEXT, 3));
  });

  it('takes back nothing but itself', async () => {
    await submit(interval(TEXT, 3));
    const edited = interval(TEXT, 4);
    await writeFile(api.configFile, edited);
    await api.apply(edited);
    await clock.advance(61_000);
    // Waits its turn behind whatever the end of the trial has set off.
    await changes().submit({ text: edited, by: 'page' });
    assert.equal(await api.fileText(), edited);
  });

  it('goes on over a restart of the daemon', async () => {
    const { version } = await submit(interval(TEXT, 3));
    await api.host.stop('shutdown');
    const kept = await readFile(join(api.folder, 'state/config-history.json'), 'utf8');
    await api.close();
    api = await createApi({ toml: interval(TEXT, 3), clock, state: { 'config-history.json': kept } });
    assert.equal(changes().trial?.version, version);
    await clock.advance(61_000);
    await takenBack();
    assert.equal(changes().trial, undefined);
  });

  it('stays over a restart of the daemon when its page had reached the one before', async () => {
    const { version } = await submit(interval(TEXT, 3));
    assert.equal(changes().reached(version), true);
    await api.host.stop('shutdown');
    const kept = await readFile(join(api.folder, 'state/config-history.json'), 'utf8');
    await api.close();
    api = await createApi({ toml: interval(TEXT, 3), clock, state: { 'config-history.json': kept } });
    assert.deepEqual([changes().trial?.version, changes().trial?.isReached], [version, true]);
    await clock.advance(61_000);
    assert.equal(await api.fileText(), interval(TEXT, 3));
    assert.equal(changes().trial, undefined);
  });

  it('is taken back later when that fails at first, and says so meanwhile', async () => {
    const { version } = await submit(interval(TEXT, 3));
    const told = async (): Promise<string | undefined> =>
      (await api.host.hooks.collect('collectNotices')).find(({ message }) => message.includes('taken back'))
        ?.message;
    // Somebody is just writing by hand.
    await writeFile(api.configFile, interval(TEXT, 4));
    await clock.advance(61_000);
    const problem = await until('the failure is told', told, { timeoutMs: 5_000 });
    assert.match(problem, /cannot be taken back .*; this is tried again/);
    assert.equal(changes().trial?.version, version);
    await writeFile(api.configFile, interval(TEXT, 3));
    await clock.advance(10_000);
    await takenBack();
    assert.match((await told()) ?? '', /were taken back/);
  });

  it('is over where the next daemon found another document', async () => {
    await submit(interval(TEXT, 3));
    await api.host.stop('shutdown');
    const kept = await readFile(join(api.folder, 'state/config-history.json'), 'utf8');
    await api.close();
    api = await createApi({ toml: interval(TEXT, 5), clock, state: { 'config-history.json': kept } });
    assert.equal(changes().trial, undefined);
    await clock.advance(61_000);
    assert.equal(
      (await changes().submit({ text: interval(TEXT, 5), by: 'page' })).message,
      'No changes detected',
    );
  });

  it('begins with nothing where what was kept cannot be read', async () => {
    await api.close();
    for (const kept of ['', '[]', '{"versions":[{"version":1}],"trial":7}', '{"versions":"x"', 'null']) {
      api = await createApi({ toml: TEXT, clock, state: { 'config-history.json': kept } });
      assert.deepEqual(
        changes()
          .history()
          .map(({ by }) => by),
        ['file'],
        kept,
      );
      await api.close();
    }
    api = await createApi({ toml: TEXT, clock });
  });
});
