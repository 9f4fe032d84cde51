import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { createManualClock } from 'mountkeeper/testing';
import type { LiveShare, Mount, NotificationEvent, RemoteEvidence, ShareStatus } from 'mountkeeper';
import { evidenceOf, verdictOfChange } from '../../../plugins/nas-watch/evidence.ts';
import type { Outages } from '../../../plugins/nas-watch/outage-file.ts';
import { NasWatcher } from '../../../plugins/nas-watch/watcher.ts';
import { spec } from '../../support/shares/fake-shares.ts';

const SILENT = 'the remote refuses connections; is its service running, and is the port right? (dial tcp)';

interface FakeShare {
  name: string;
  connection: string;
  mounted: boolean;
  answers: boolean | undefined;
  speed: number;
  confirms: boolean;
  /** What its failed checks show. */
  evidence: RemoteEvidence | undefined;
}

/** Checks that the plugin made itself. */
const asked = { checks: 0 };

function live({ name, connection, mounted, answers, confirms, evidence }: FakeShare): LiveShare {
  const own = spec(name);
  const checkRemote = async (): Promise<void> => {
    asked.checks += 1;
    if (confirms) throw Object.assign(new Error('no answer'), { remote: evidence });
  };
  return {
    spec: { ...own, connection: { ...own.connection, name: connection } },
    health: mounted ? 'healthy' : 'failed',
    mount: mounted ? ({ checkRemote } as unknown as Mount) : undefined,
    remoteAnswers: mounted ? answers : undefined,
    remoteEvidence: mounted && answers === false ? evidence : undefined,
  };
}

function createKit(former: Outages = {}, minutes = 5) {
  const clock = createManualClock();
  const shares: FakeShare[] = [];
  const events: NotificationEvent[] = [];
  const back: string[] = [];
  const opened: string[] = [];
  const changes: object[] = [];
  const saved: Outages[] = [];
  const end = new AbortController();
  const probe = { ok: false, reason: SILENT, asked: [] as string[], refusals: 0 };
  const door: { isOpen: boolean | undefined; knocks: number } = { isOpen: undefined, knocks: 0 };
  const config = { minutes };
  let setMs = 0;
  const watcher = new NasWatcher(
    {
      clock: {
        now: () => clock.now() + setMs,
        monotonic: () => clock.monotonic(),
        sleep: (ms, signal) => clock.sleep(ms, signal),
        after: (ms, fn) => clock.after(ms, fn),
        deadline: (ms, parent) => clock.deadline(ms, parent),
      },
      log: pino({ level: 'silent' }),
      signal: end.signal,
      shares: () => shares.map(live),
      status: (name) => ({ speed: shares.find((share) => share.name === name)?.speed ?? 0 }) as ShareStatus,
      prober: () => ({
        probe: async ({ share }) => {
          probe.asked.push(share.name);
          return probe.ok ? { ok: true } : { ok: false, reason: probe.reason };
        },
      }),
      dial: async () => ((door.knocks += 1) > 0 ? door.isOpen : undefined),
      offlineMinutes: () => config.minutes,
      notify: async (event) => {
        if (probe.refusals-- > 0) throw new Error('full');
        events.push(event);
      },
      onBack: (connection) => void back.push(connection),
      onOpen: (connection) => {
        opened.push(connection);
        const share = shares.find((one) => one.connection === connection);
        if (probe.ok && share)
          watcher.healthChanged({ share: share.name, from: 'probing', to: 'healthy', reason: null });
      },
      onChange: (change) => void changes.push(change),
      save: (outages) => void saved.push(outages),
    },
    former,
  );
  const pass = async (seconds: number): Promise<void> => {
    for (let second = 0; second < seconds; second += 1) {
      watcher.look();
      await clock.advance(1_000);
    }
    watcher.look();
    await clock.advance(0);
  };
  const add = (name: string, rest: Partial<FakeShare> = {}): FakeShare => {
    const share = {
      name,
      connection: 'nas',
      mounted: true,
      answers: true,
      speed: 0,
      confirms: true,
      evidence: 'silent' as const,
      ...rest,
    };
    shares.push(share);
    return share;
  };
  return {
    clock,
    watcher,
    shares,
    add,
    pass,
    events,
    back,
    opened,
    changes,
    saved,
    probe,
    door,
    config,
    /** The wall clock is set by so many milliseconds. */
    set: (ms: number) => (setMs += ms),
    offline: () => watcher.offline.map(({ connection }) => connection),
  };
}

describe('the evidence', () => {
  it('of a mounted share: its own check, which also a no has answered', () => {
    const verdict = (change: Partial<LiveShare>) =>
      evidenceOf(
        {
          ...live({
            name: 'a',
            connection: 'nas',
            mounted: true,
            answers: false,
            speed: 0,
            confirms: true,
            evidence: 'silent',
          }),
          ...change,
        },
        undefined,
        5,
      );
    assert.deepEqual(verdict({}), [{ verdict: 'silent', atMs: 5 }]);
    assert.deepEqual(verdict({ remoteEvidence: undefined }), [{ verdict: 'unclear', atMs: 5 }]);
    assert.deepEqual(verdict({ remoteEvidence: 'answers' }), [{ verdict: 'answers', atMs: 5 }]);
    assert.deepEqual(verdict({ remoteAnswers: true, remoteEvidence: 'silent' }), [
      { verdict: 'answers', atMs: 5 },
    ]);
  });

  it('of a change of health', () => {
    assert.equal(verdictOfChange({ from: 'probing', to: 'healthy' }), 'answers');
    assert.equal(
      verdictOfChange({ from: 'probing', to: 'healthy' }, false),
      undefined,
      'it came up without it',
    );
    assert.equal(verdictOfChange({ from: 'probing', to: 'failed', remote: 'silent' }), 'silent');
    assert.equal(verdictOfChange({ from: 'healthy', to: 'failed' }), undefined);
    assert.equal(verdictOfChange({ from: 'pending', to: 'probing' }), undefined);
  });
});

describe('a connection', () => {
  it('is offline after confirmed silence and online with the first answer', async () => {
    const kit = createKit();
    const share = kit.add('photos');
    await kit.pass(5);
    share.answers = false;
    await kit.pass(3);
    assert.deepEqual(kit.offline(), ['nas']);
    assert.deepEqual(kit.changes, [{ connection: 'nas', isOffline: true }]);
    share.answers = true;
    kit.watcher.look();
    assert.deepEqual([kit.offline(), kit.back], [[], ['nas']]);
    assert.deepEqual(kit.changes.slice(1), [{ connection: 'nas', isOffline: false }]);
  });

  it('is not offline for one lost check', async () => {
    const kit = createKit();
    const share = kit.add('photos', { confirms: false });
    for (let round = 0; round < 10; round += 1) {
      share.answers = round % 2 === 0;
      await kit.pass(3);
      assert.deepEqual(kit.offline(), []);
    }
    share.answers = false;
    share.confirms = true;
    await kit.pass(14);
    assert.deepEqual(kit.offline(), ['nas']);
  });

  it('is not offline for a failure that says nothing of it, while something accepts at its address', async () => {
    const kit = createKit();
    kit.door.isOpen = true;
    const share = kit.add('photos', { answers: false, evidence: undefined });
    await kit.pass(60);
    assert.deepEqual(kit.offline(), []);
    assert.ok(kit.door.knocks <= 15, `${kit.door.knocks} knocks in a minute`);
    kit.door.isOpen = false;
    await kit.pass(15);
    assert.deepEqual(kit.offline(), ['nas']);
    kit.door.isOpen = true;
    share.answers = true;
    await kit.pass(1);
    assert.deepEqual(kit.offline(), []);
  });

  it('is offline after a failure that says nothing of it, where nobody can dial it', async () => {
    const kit = createKit();
    kit.add('photos', { answers: false, evidence: undefined });
    await kit.pass(6);
    assert.deepEqual(kit.offline(), ['nas']);
  });

  it('is not offline while one of its shares answers, nor because another connection is', async () => {
    const kit = createKit();
    kit.add('a', { answers: false });
    const b = kit.add('b');
    kit.add('c', { connection: 'other', answers: false });
    await kit.pass(30);
    assert.deepEqual(kit.offline(), ['other']);
    b.answers = false;
    await kit.pass(6);
    assert.deepEqual(kit.offline(), ['nas', 'other']);
  });

  it('is not offline while bytes move', async () => {
    const kit = createKit();
    const share = kit.add('a', { answers: false, speed: 1_000 });
    const before = asked.checks;
    await kit.pass(30);
    assert.deepEqual([kit.offline(), asked.checks - before], [[], 1]);
    share.speed = 0;
    await kit.pass(5);
    assert.deepEqual(kit.offline(), ['nas']);
  });

  it('is judged by probes while no share is mounted, and probed to be called back', async () => {
    const kit = createKit();
    kit.add('a', { mounted: false });
    await kit.pass(60);
    assert.deepEqual([kit.offline(), kit.probe.asked], [[], []]);
    kit.watcher.healthChanged({
      share: 'a',
      from: 'probing',
      to: 'failed',
      reason: SILENT,
      remote: 'silent',
    });
    await kit.pass(25);
    assert.deepEqual(kit.offline(), ['nas']);
    assert.deepEqual(kit.probe.asked, ['a', 'a', 'a']);
    kit.probe.ok = true;
    await kit.pass(10);
    assert.deepEqual([kit.offline(), kit.back], [[], ['nas']]);
    assert.equal(kit.clock.pending, 0);
  });

  it('is probed as soon as somebody opens, and often while nobody answers there', async () => {
    const kit = createKit();
    kit.add('a', { mounted: false });
    kit.door.isOpen = false;
    kit.watcher.healthChanged({
      share: 'a',
      from: 'probing',
      to: 'failed',
      reason: SILENT,
      remote: 'silent',
    });
    await kit.pass(12);
    const [probes, knocks] = [kit.probe.asked.length, kit.door.knocks];
    assert.ok(knocks >= 10 && probes <= 2, `${knocks} knocks, ${probes} probes`);
    kit.door.isOpen = true;
    await kit.pass(7);
    assert.ok(kit.probe.asked.length - probes >= 2, `${kit.probe.asked.length - probes} probes in 7 s`);
    assert.deepEqual(kit.opened, ['nas'], 'its failed shares are probed at once');
    assert.deepEqual(kit.offline(), ['nas']);
    kit.door.isOpen = false;
    await kit.pass(2);
    kit.probe.ok = true;
    kit.door.isOpen = true;
    await kit.pass(2);
    assert.deepEqual([kit.offline(), kit.back], [[], ['nas']]);
    const before = kit.door.knocks;
    await kit.pass(9);
    assert.equal(kit.door.knocks, before);
  });

  it('begins a probe anew that began before anybody listened there, and none from after that', async () => {
    const kit = createKit();
    kit.add('a', { mounted: false });
    kit.door.isOpen = false;
    const failed = { share: 'a', from: 'probing', to: 'failed', reason: SILENT, remote: 'silent' } as const;
    kit.watcher.healthChanged(failed);
    await kit.pass(12);
    const probing = { share: 'a', from: 'failed', to: 'probing', reason: null } as const;
    kit.watcher.healthChanged(probing);
    await kit.clock.advance(2_500);
    assert.equal(kit.watcher.isStuck('a'), true);
    kit.door.isOpen = true;
    await kit.pass(2);
    kit.watcher.healthChanged(failed);
    kit.watcher.healthChanged(probing);
    await kit.clock.advance(2_500);
    assert.equal(kit.watcher.isStuck('a'), false);
  });

  it('is welcomed back after a silence too short for an outage', async () => {
    const kit = createKit();
    kit.add('a', { mounted: false });
    kit.door.isOpen = false;
    kit.watcher.healthChanged({
      share: 'a',
      from: 'probing',
      to: 'failed',
      reason: SILENT,
      remote: 'silent',
    });
    await kit.pass(1);
    kit.probe.ok = true;
    kit.door.isOpen = true;
    await kit.pass(2);
    assert.deepEqual([kit.offline(), kit.opened], [[], ['nas']]);
  });

  it('is online when the NAS says no to a share', async () => {
    const kit = createKit();
    kit.add('a', { mounted: false });
    for (let round = 0; round < 5; round += 1) {
      kit.watcher.healthChanged({
        share: 'a',
        from: 'probing',
        to: 'failed',
        reason: 'the remote refused the user name or password (x)',
        remote: 'answers',
      });
      await kit.pass(8);
    }
    assert.deepEqual(kit.offline(), []);
  });

  it('stays offline while nothing is known, and is asked no more for it', async () => {
    const kit = createKit();
    const share = kit.add('a', { answers: false });
    await kit.pass(5);
    share.answers = undefined;
    await kit.pass(5);
    share.answers = false;
    const before = asked.checks;
    await kit.pass(5);
    assert.deepEqual([kit.offline(), asked.checks - before], [['nas'], 0]);
  });

  it('is forgotten with its last share', async () => {
    const kit = createKit();
    kit.add('a', { answers: false });
    await kit.pass(10);
    kit.shares.length = 0;
    kit.watcher.look();
    assert.deepEqual([kit.offline(), kit.events], [[], []]);
  });
});

describe('people', () => {
  it('are told once after the minutes set, and once of the return with the duration', async () => {
    const kit = createKit();
    const share = kit.add('a', { answers: false });
    await kit.pass(5 * 60 - 2);
    assert.equal(kit.events.length, 0);
    await kit.pass(120);
    assert.deepEqual(
      kit.events.map(({ type }) => type),
      ['nas.offline'],
    );
    share.answers = true;
    await kit.pass(10);
    const back = kit.events[1];
    assert.deepEqual(
      [kit.events.length, back?.type, back?.data['connection'], back?.data['duration_seconds']],
      [2, 'nas.back', 'nas', 418],
    );
    assert.match(back?.message ?? '', /back after 6m 58s/);
  });

  it('are told of the time that has passed, however the clock is set meanwhile', async () => {
    const kit = createKit();
    const share = kit.add('a', { answers: false });
    await kit.pass(60);
    kit.set(3_600_000);
    await kit.pass(60);
    assert.deepEqual([kit.events, kit.watcher.offline[0]?.lastedMs], [[], 120_000]);
    kit.set(-3_600_000);
    await kit.pass(240);
    share.answers = true;
    await kit.pass(1);
    assert.deepEqual(
      kit.events.map(({ type, data }) => [type, data['duration_seconds']]),
      [
        ['nas.offline', 300],
        ['nas.back', 360],
      ],
    );
  });

  it('are told nothing of a short outage, nor with 0 minutes', async () => {
    for (const minutes of [5, 0]) {
      const kit = createKit({}, minutes);
      const share = kit.add('a', { answers: false });
      await kit.pass(minutes === 0 ? 3_000 : 240);
      assert.equal(kit.offline().length, 1);
      share.answers = true;
      await kit.pass(5);
      assert.deepEqual(kit.events, []);
    }
  });

  it('are told later when the event was not taken at first', async () => {
    const kit = createKit({}, 1);
    kit.add('a', { answers: false });
    kit.probe.refusals = 2;
    await kit.pass(70);
    assert.equal(kit.events.length, 1);
  });

  it('are told neither twice nor too little across a restart', async () => {
    const first = createKit({}, 1);
    first.add('a', { answers: false });
    await first.pass(90);
    const former = first.saved.at(-1) as Outages;
    assert.equal(former['nas']?.isTold, true);
    const second = createKit(former, 1);
    second.add('a', { answers: false });
    await second.pass(120);
    assert.deepEqual([second.events, second.offline()], [[], ['nas']]);
    const third = createKit(former, 1);
    third.add('a');
    assert.deepEqual(third.offline(), []);
    await third.pass(2);
    assert.deepEqual(
      third.events.map(({ type }) => type),
      ['nas.back'],
    );
    assert.deepEqual(third.saved.at(-1), {});
  });
});
