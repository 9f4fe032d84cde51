/**
 * Documents on trial: taken back by the daemon when their page is cut off or a share fails, and only then.
 */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { ConfigChanges } from '../../core/contract/config-changes.ts';
import type { LiveShare } from '../../core/contract/shares.ts';
import { createManualClock } from '../../core/testing/manual-clock.ts';
import type { ManualClock } from '../../core/testing/manual-clock.ts';
import { until } from '../support/platform/wait.ts';
import { createApi, SAMPLE } from './fixture.ts';
import type { ApiFixture } from './fixture.ts';
import { sharesOf } from '../support/shares/fake-shares.ts';

const TEXT = `# ours\n${SAMPLE}\n[web]\npassword = "correct horse"\n`;
/** Of nobody's password. */
const HASH = `scrypt$16384$8$1$${'A'.repeat(22)}$${'A'.repeat(43)}`;
const interval = (text: string, seconds: number): string =>
  `${text}\n[supervisor]\npoll_interval = "${seconds}s"\n`;

let api: ApiFixture;
let clock: ManualClock;
/** Names of shares that have the former settings still. */
let waiting: readonly string[] = [];
let webProblem: string | undefined;

const changes = () => api.host.service('configChanges') as ConfigChanges;

function withApi(): void {
  beforeEach(async () => {
    clock = createManualClock();
    waiting = [];
    webProblem = undefined;
    const web = {
      get problem() {
        return webProblem;
      },
    };
    const list = () =>
      waiting.map((name) => ({ spec: { share: { name } }, hasFormerSettings: true }) as LiveShare);
    api = await createApi({ toml: TEXT, clock, shares: sharesOf(list), web });
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
  const healths = (...list: readonly ('healthy' | 'failed' | 'pending')[]): void => {
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

  it('is taken back when the web server is not where it says, and a page reaches the former place', async () => {
    const { version } = await submit(interval(TEXT, 3));
    webProblem = 'the web interface is not where [web] says, still on 127.0.0.1 port 1: it is in use';
    assert.equal(changes().reached(version), false);
    await clock.advance(61_000);
    await takenBack();
    assert.match(changes().takenBack?.message ?? '', /not where \[web\] says, still on 127\.0\.0\.1 port 1/);
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

  it('is taken back when a share that was healthy is anything else, with its name and why', async () => {
    const told = async (): Promise<string> =>
      (await api.host.hooks.collect('collectNotices')).map(({ message }) => message).join();
    const cases = [
      { after: { health: 'pending' }, hasFailed: false, reason: 'it is not mounted yet' },
      { after: { health: 'probing' }, hasFailed: false, reason: 'it is not mounted yet' },
      { after: { health: 'probing', mounted: true }, hasFailed: true, reason: 'nothing of it can be read' },
      {
        after: { health: 'probing', mounted: true, healthMessage: 'the remote does not answer' },
        hasFailed: true,
        reason: 'the remote does not answer',
      },
      {
        after: { health: 'failed', healthMessage: 'the NAS is offline' },
        hasFailed: true,
        reason: 'the NAS is offline',
      },
    ] as const;
    for (const { after, hasFailed, reason } of cases) {
      healths('healthy', 'healthy');
      const { version } = await submit(interval(TEXT, 3));
      changes().reached(version);
      api.publish([
        { name: 'photos', ...after },
        { name: '照片 2024', health: 'healthy' },
      ]);
      assert.deepEqual(changes().trial?.down, [{ share: 'photos', hasFailed, reason }]);
      await clock.advance(61_000);
      await takenBack();
      assert.ok(
        (await told()).includes(`since the share 'photos' was healthy and is not any more: ${reason}`),
      );
    }
  });

  it('names one of many shares that it took down, and counts the others', async () => {
    const names = Array.from({ length: 5 }, (_, at) => `s${at}`);
    const shares = names.map(
      (name) => `[[shares]]\nname = "${name}"\nconnection = "nas"\nremote_path = "/${name}"\n`,
    );
    const text = `${TEXT}\n${shares.join('\n')}`;
    await changes().submit({ text, by: 'page' });
    api.publish(names.map((name) => ({ name, health: 'healthy' as const })));
    const { version } = await submit(interval(text, 3));
    changes().reached(version);
    api.publish(names.map((name) => ({ name, health: 'probing' as const })));
    await clock.advance(61_000);
    await until('it is taken back', () => Promise.resolve(changes().takenBack !== undefined), {
      timeoutMs: 5_000,
    });
    assert.match(changes().takenBack?.message ?? '', /'s0' was[^']*; 4 more shares are not/);
  });

  it('judges no share again that was healthy at its time', async () => {
    healths('healthy', 'healthy');
    const { version } = await submit(interval(TEXT, 3));
    waiting = ['照片 2024'];
    changes().reached(version);
    await clock.advance(61_000);
    // As of a share that somebody mounts anew, an hour later.
    healths('failed', 'healthy');
    assert.deepEqual(changes().trial?.down, []);
    await clock.advance(600_000);
    assert.equal(await api.fileText(), interval(TEXT, 3));
  });

  it('is not about a share that waited before it, for another change', async () => {
    healths('healthy', 'healthy');
    waiting = ['photos'];
    const { version } = await submit(interval(TEXT, 3));
    changes().reached(version);
    assert.deepEqual(changes().trial?.waiting, []);
    healths('failed', 'healthy');
    await clock.advance(61_000);
    assert.equal(await api.fileText(), interval(TEXT, 3));
    assert.equal(changes().trial, undefined);
  });

  it('goes back with the one before it that was on trial, too, when a share fails that was healthy', async () => {
    healths('healthy', 'healthy');
    await submit(interval(TEXT, 3));
    healths('pending', 'healthy');
    const { version } = await submit(interval(TEXT, 4));
    changes().reached(version);
    healths('failed', 'healthy');
    await clock.advance(61_000);
    await takenBack();
    healths('healthy', 'healthy');
    await submit(interval(TEXT, 5));
    await submit(TEXT);
    assert.equal(changes().trial, undefined, 'it is what it would go back to');
  });

  it('stays when a share that it removed goes down, and when one that was down before is down', async () => {
    healths('healthy', 'failed');
    const without = TEXT.replace(/\[\[shares\]\]\nname = "photos"[^[]*/, '');
    assert.notEqual(without, TEXT);
    const { version } = await submit(without);
    changes().reached(version);
    // It is in the status until its files are on the NAS.
    healths('failed', 'failed');
    assert.deepEqual(changes().trial?.down, []);
    await clock.advance(61_000);
    assert.equal(await api.fileText(), without);
    assert.equal(changes().trial, undefined);
  });

  describe('of a share that sends its files by the former settings first', () => {
    const begun = async (): Promise<void> => {
      healths('healthy', 'healthy');
      const { version } = await submit(interval(TEXT, 3));
      changes().reached(version);
      waiting = ['photos'];
      assert.deepEqual(changes().trial?.waiting, ['photos']);
      await clock.advance(600_000);
      assert.ok(changes().trial, 'nothing is known of the new ones');
      waiting = [];
      healths('pending', 'healthy');
    };

    it('says no time while that lasts, and does not count the share as one that is down', async () => {
      healths('healthy', 'healthy');
      const { version } = await submit(interval(TEXT, 3));
      waiting = ['photos'];
      assert.equal(changes().trial?.until, clock.now() + 60_000, 'for the page to reach the daemon');
      changes().reached(version);
      healths('pending', 'healthy');
      assert.deepEqual([changes().trial?.until, changes().trial?.down], [undefined, []]);
      waiting = [];
      await clock.advance(20_000);
      assert.deepEqual(changes().trial?.failed, ['photos']);
      assert.ok((changes().trial?.until ?? 0) > clock.now() + 30_000);
    });

    it('has its minute from then on also where that ends within the first one', async () => {
      healths('healthy', 'healthy');
      const { version } = await submit(interval(TEXT, 3));
      changes().reached(version);
      waiting = ['photos'];
      await clock.advance(55_000);
      waiting = [];
      healths('pending', 'healthy');
      await clock.advance(40_000);
      assert.ok(changes().trial);
      healths('healthy', 'healthy');
      await clock.advance(30_000);
      assert.equal(changes().trial, undefined);
      assert.equal(await api.fileText(), interval(TEXT, 3));
    });

    it('is judged while others still wait', async () => {
      healths('healthy', 'healthy');
      const { version } = await submit(interval(TEXT, 3));
      changes().reached(version);
      waiting = ['photos', '照片 2024'];
      await clock.advance(100_000);
      waiting = ['照片 2024'];
      healths('failed', 'healthy');
      await clock.advance(80_000);
      await takenBack();
    });

    it('stays when the share is healthy a minute after that', async () => {
      await begun();
      await clock.advance(50_000);
      assert.ok(changes().trial);
      healths('healthy', 'healthy');
      await clock.advance(30_000);
      assert.equal(changes().trial, undefined);
      assert.equal(await api.fileText(), interval(TEXT, 3));
    });

    it('is taken back when the share is not healthy a minute after that', async () => {
      await begun();
      await clock.advance(80_000);
      await takenBack();
    });

    it('is taken back at once when another one is not healthy', async () => {
      healths('healthy', 'healthy');
      const { version } = await submit(interval(TEXT, 3));
      changes().reached(version);
      waiting = ['photos'];
      healths('healthy', 'failed');
      await clock.advance(61_000);
      await takenBack();
    });
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

  it('does not take back what was written into the file meanwhile, with the next one from the page', async () => {
    const { version } = await submit(interval(TEXT, 3));
    changes().reached(version);
    const edited = interval(TEXT, 4);
    await api.apply(edited);
    await writeFile(api.configFile, edited);
    await submit(interval(TEXT, 5));
    await clock.advance(61_000);
    await until('the text before it is back', async () => (await api.fileText()) === edited, {
      timeoutMs: 5_000,
    });
  });

  describe('that changes who may enter', () => {
    const WITH_BOB = `${TEXT}[[web.users]]\nname = "bob"\npassword_hash = "${HASH}"\nrole = "admin"\n`;
    const CHANGED = TEXT.replace('correct horse', 'another, longer');
    /** `isShutOut`: by what is sent, its sender is let in no more. */
    const enter = (text: string, isShutOut = false) =>
      changes().submit({
        text,
        by: 'page',
        onTrial: true,
        isStillLetIn: () => !isShutOut || api.config.current.text !== text,
      });
    const passes = async (text: string): Promise<void> => {
      healths('failed', 'healthy');
      await clock.advance(61_000);
      // Waits its turn behind whatever the end of the trial has set off.
      await changes().submit({ text, by: 'page' });
      assert.deepEqual([await api.fileText(), changes().trial], [text, undefined]);
      assert.equal(changes().takenBack, undefined);
    };

    it('is not taken back by a share that fails, nor by the trial of the one before, which stays', async () => {
      await changes().submit({ text: WITH_BOB, by: 'api' });
      healths('healthy', 'healthy');
      const { version } = await submit(interval(WITH_BOB, 3));
      changes().reached(version);
      healths('failed', 'healthy');
      await enter(interval(TEXT, 3));
      assert.equal(changes().trial, undefined);
      await passes(interval(TEXT, 3));
    });

    it('is taken back when nobody gets in by it any more, to the one before it alone', async () => {
      await submit(interval(TEXT, 3));
      const { status } = await enter(interval(CHANGED, 3), true);
      assert.deepEqual([status, changes().trial?.isReached], [200, false]);
      await clock.advance(61_000);
      await until('the former password counts', async () => (await api.fileText()) === interval(TEXT, 3), {
        timeoutMs: 5_000,
      });
    });

    it('stays once somebody has got in by it, whatever becomes of the shares', async () => {
      healths('healthy', 'healthy');
      const { version } = await enter(CHANGED, true);
      healths('failed', 'healthy');
      assert.deepEqual([changes().trial?.down, changes().reached(version)], [[], true]);
      assert.equal(changes().trial, undefined);
      await passes(CHANGED);
    });

    it('is not taken back with the next one, whose sender got in by it', async () => {
      healths('healthy', 'healthy');
      await enter(CHANGED, true);
      const { version } = await submit(interval(CHANGED, 3));
      changes().reached(version);
      healths('failed', 'healthy');
      await clock.advance(61_000);
      await until('the next one is taken back', async () => (await api.fileText()) === CHANGED, {
        timeoutMs: 5_000,
      });
    });

    it('is on trial where it moves the page, too', async () => {
      await changes().submit({ text: WITH_BOB, by: 'api' });
      const moved = TEXT.replace('[web]\n', '[web]\nhostnames = ["elsewhere"]\n');
      const { version } = await enter(moved);
      assert.equal(changes().trial?.version, version);
      await clock.advance(61_000);
      await until('it is taken back', async () => (await api.fileText()) === WITH_BOB, { timeoutMs: 5_000 });
    });

    it('has only to be reached after a restart of the daemon as well', async () => {
      await enter(CHANGED, true);
      await api.host.stop('shutdown');
      const kept = await readFile(join(api.folder, 'state/config-history.json'), 'utf8');
      await api.close();
      api = await createApi({ toml: CHANGED, clock, state: { 'config-history.json': kept } });
      assert.equal(changes().reached(changes().version), true);
      assert.equal(changes().trial, undefined);
    });
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

  it('goes back, once somebody has asked for it, also when that fails at first and all is well', async () => {
    healths('healthy', 'healthy');
    const { version } = await submit(interval(TEXT, 3));
    changes().reached(version);
    await writeFile(api.configFile, interval(TEXT, 4));
    assert.equal((await changes().revert(version)).status, 500);
    await writeFile(api.configFile, interval(TEXT, 3));
    await clock.advance(11_000);
    await takenBack();
  });

  it('tells a failure of one trial in no other', async () => {
    const { version } = await submit(interval(TEXT, 3));
    await writeFile(api.configFile, interval(TEXT, 4));
    assert.equal((await changes().revert(version)).status, 500);
    assert.equal(changes().confirm(version), true);
    await writeFile(api.configFile, interval(TEXT, 3));
    await submit(interval(TEXT, 5));
    assert.ok(changes().trial);
    assert.deepEqual(await api.host.hooks.collect('collectNotices'), []);
  });

  it('is kept or taken back, whichever came first, and nobody is told both', async () => {
    const first = await submit(interval(TEXT, 3));
    const reverted = changes().revert(first.version);
    assert.equal(changes().confirm(first.version), true, 'it waits for its turn');
    assert.equal((await reverted).status, 409);
    assert.equal(await api.fileText(), interval(TEXT, 3));
    const second = await submit(interval(TEXT, 4));
    const answer = changes().revert(second.version);
    // It has its turn then, and writes its file.
    await setImmediate();
    assert.equal(changes().confirm(second.version), false, 'it is under way');
    assert.equal((await answer).status, 200);
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
