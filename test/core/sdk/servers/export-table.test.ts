import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { createManualClock } from 'mountkeeper/testing';
import type { LiveShare, Mount, MountEntry } from 'mountkeeper';
import { createExportTable } from '../../../../core/sdk/servers/export-table.ts';
import { FakeMount, planOf, spec, sharesOf } from '../../../support/shares/fake-shares.ts';

interface Entry {
  readonly path: string;
  readonly readOnly: boolean;
}

function setUp(mountedPaths: readonly string[] = [], appliesAll = false) {
  const clock = createManualClock();
  const living: LiveShare[] = [];
  const done: string[] = [];
  let tries = 0;
  const refusals = new Map<string, string>();
  /** By share: why the server does not take a change of it; '' is a new one. */
  const failures = new Map<string, string>();
  const document = { current: {} };
  /** Not shown here by the running document. */
  const taken = new Set<string>();
  const shown = createExportTable<Entry>({
    basis: () => document.current,
    clock,
    log: pino({ level: 'silent' }),
    protocol: 'smb',
    mountTable: {
      list: async () => [],
      find: async (path) => (mountedPaths.includes(path) ? ({ mountPoint: path } as MountEntry) : undefined),
    },
    shares: sharesOf(() => [...living]),
    isMeant: (share) => !taken.has(share),
    describe: ({ share }, mount) => {
      const reason = refusals.get(share.name);
      if (reason !== undefined) throw new Error(reason);
      return { path: mount.plan.mountPoint, readOnly: share.read_only };
    },
    appliesAll,
    apply: async (changed) => {
      tries += 1;
      const failure = failures.get(changed ?? '');
      if (failure !== undefined) throw new Error(failure);
      done.push(
        `${[...shown.entries.keys()].join('+') || 'none'}${changed === undefined ? '' : ` changed ${changed}`}`,
      );
    },
  });
  return { clock, living, done, refusals, failures, taken, document, shown, tries: () => tries };
}

const mountOf = (name: string): Mount => new FakeMount(planOf(spec(name)), name);
const live = (name: string, change: Partial<LiveShare> = {}): LiveShare => ({
  spec: spec(name),
  health: 'healthy',
  mount: mountOf(name),
  remoteAnswers: true,
  ...change,
});

describe('the shares that a protocol shows', () => {
  it('are told to the server once each time they change, and which one clients must be cut from', async () => {
    const { shown, done } = setUp();
    await shown.add(spec('a'), mountOf('a'));
    await shown.add(spec('a'), mountOf('a'));
    await shown.add(spec('b'), mountOf('b'));
    await shown.add(spec('a', { readOnly: true }), mountOf('a'));
    await shown.remove('b');
    await shown.remove('b');
    assert.deepEqual(done, ['a', 'a+b', 'a+b changed a', 'a changed b']);
  });

  it('are those that are mounted, also while one cannot be listed, since its NAS is away', async () => {
    const { shown, living, done, refusals } = setUp();
    refusals.set('b', 'not yet');
    living.push(live('a', { health: 'probing', remoteAnswers: false }), live('b', { health: 'probing' }));
    living.push(live('c', { health: 'probing', mount: undefined }));
    await shown.open();
    refusals.clear();
    await shown.redescribe();
    assert.equal(done.at(-1), 'a+b');
  });

  it('are only those whose protocols name it', async () => {
    const { shown, done } = setUp();
    await shown.add(spec('a'), mountOf('a'));
    await shown.add(spec('a', { protocols: ['nfs'] }), mountOf('a'));
    assert.deepEqual(done, ['a', 'none changed a']);
  });

  it('leave out what cannot be shown and say why, until it can', async () => {
    const { shown, refusals } = setUp();
    refusals.set('a', 'its path holds a "%"');
    await shown.add(spec('a'), mountOf('a'));
    assert.equal(shown.entries.size, 0);
    assert.deepEqual(shown.notices(), [
      { level: 'warning', message: 'the share \'a\' is not shown over SMB: its path holds a "%"' },
    ]);
    refusals.clear();
    await shown.add(spec('a'), mountOf('a'));
    assert.deepEqual([shown.notices(), [...shown.entries.keys()]], [[], ['a']]);
  });

  it('show what could not be shown when it came, by something that was over before anybody looked again', async () => {
    const { shown, refusals, living } = setUp();
    await shown.open();
    living.push(live('a'));
    refusals.set('a', 'nothing can be read');
    await shown.add(spec('a'), mountOf('a'));
    refusals.clear();
    await shown.catchUp();
    assert.deepEqual([...shown.entries.keys()], ['a']);
  });

  it('say nothing of one that could not be shown and is gone', async () => {
    const { shown, refusals } = setUp();
    refusals.set('a', 'its path holds a "%"');
    await shown.add(spec('a'), mountOf('a'));
    assert.equal(shown.notices().length, 1);
    await shown.remove('a');
    assert.deepEqual(shown.notices(), []);
  });

  it('are cut from a share that can be shown no more', async () => {
    const { shown, done, refusals } = setUp();
    await shown.add(spec('a'), mountOf('a'));
    refusals.set('a', 'no');
    await shown.add(spec('a'), mountOf('a'));
    assert.deepEqual(done, ['a', 'none changed a']);
  });

  it('are described anew while they are shown, and told to the server where that changes anything', async () => {
    const { shown, done, refusals, living } = setUp();
    living.push(live('a'), live('b'));
    for (const { spec: one, mount } of living) if (mount) await shown.add(one, mount);
    await shown.remove('b');
    done.length = 0;
    await shown.redescribe();
    assert.deepEqual(done, []);
    living[0] = live('a', { spec: { ...spec('a'), share: { ...spec('a').share, read_only: true } } });
    await shown.redescribe();
    assert.deepEqual(done, ['a changed a']);
    refusals.set('a', 'no');
    await shown.redescribe();
    assert.deepEqual(done, ['a changed a', 'none changed a']);
  });

  it('are none that the running document has taken away, though their mounts were not told of it yet', async () => {
    const { shown, done, taken, living } = setUp();
    living.push(live('a'), live('b'));
    for (const { spec: one, mount } of living) if (mount) await shown.add(one, mount);
    done.length = 0;
    taken.add('a');
    await shown.redescribe();
    assert.deepEqual([done, shown.notices()], [['b changed a'], []]);
    await shown.add(spec('a'), mountOf('a'));
    assert.deepEqual([...shown.entries.keys()], ['b']);
    taken.clear();
    await shown.add(spec('a'), mountOf('a'));
    assert.deepEqual([...shown.entries.keys()], ['b', 'a']);
  });

  it('are told to the server again until it takes them, whether they are new, changed or gone', async () => {
    const { shown, done, failures } = setUp();
    failures.set('', 'disk full').set('a', 'disk full');
    await assert.rejects(shown.add(spec('a'), mountOf('a')), /disk full/);
    await shown.catchUp();
    assert.deepEqual(done, []);
    failures.delete('');
    await shown.catchUp();
    await shown.catchUp();
    assert.deepEqual(done.splice(0), ['a']);
    await assert.rejects(shown.add(spec('a', { readOnly: true }), mountOf('a')), /disk full/);
    failures.clear();
    // As it was before: the server may have taken half of it.
    await shown.add(spec('a'), mountOf('a'));
    assert.deepEqual(done.splice(0), ['a changed a']);
    failures.set('a', 'disk full');
    await assert.rejects(shown.remove('a'), /disk full/);
    failures.clear();
    await shown.catchUp();
    assert.deepEqual(done, ['none changed a']);
  });

  it('are described anew at a look when the document is another one, and only then', async () => {
    const { shown, done, living, document } = setUp();
    living.push(live('a'));
    await shown.open();
    done.length = 0;
    living[0] = live('a', { spec: { ...spec('a'), share: { ...spec('a').share, read_only: true } } });
    await shown.catchUp();
    assert.deepEqual(done, []);
    document.current = {};
    await shown.catchUp();
    await shown.catchUp();
    assert.deepEqual(done, ['a changed a']);
  });

  it('come at the look after a change of what they are described by, though they could not be shown', async () => {
    const { shown, done, refusals, living, document } = setUp();
    living.push(
      live('a'),
      live('sick', { health: 'failed', mount: undefined }),
      live('other', { spec: spec('other', { protocols: ['nfs'] }) }),
    );
    for (const { spec: one } of living) refusals.set(one.share.name, 'no');
    await shown.open();
    await shown.add(spec('sick'), mountOf('sick'));
    await shown.catchUp();
    refusals.clear();
    await shown.catchUp();
    assert.deepEqual(done, []);
    document.current = {};
    await shown.catchUp();
    assert.deepEqual(done, ['a']);
    assert.equal(shown.notices().length, 1, 'the sick one');
  });

  it('are told to the server though it does not take another one', async () => {
    const { shown, done, failures, living } = setUp();
    living.push(live('a'), live('b'));
    for (const { spec: one, mount } of living) if (mount) await shown.add(one, mount);
    done.length = 0;
    const readOnly = (name: string) => ({ ...spec(name), share: { ...spec(name).share, read_only: true } });
    living.splice(0, 2, live('a', { spec: readOnly('a') }), live('b', { spec: readOnly('b') }));
    failures.set('a', 'busy');
    await assert.rejects(shown.redescribe(), /busy/);
    assert.deepEqual(done, ['a+b changed b']);
    failures.clear();
    await shown.redescribe();
    assert.deepEqual(done, ['a+b changed b', 'a+b changed a']);
  });

  it('are told to the server once for all of them where it takes all at once, also when it fails', async () => {
    const { shown, done, failures, tries } = setUp([], true);
    failures.set('', 'it hangs');
    for (const name of ['a', 'b', 'c']) await assert.rejects(shown.add(spec(name), mountOf(name)), /hangs/);
    const before = tries();
    await shown.catchUp();
    assert.equal(tries() - before, 1);
    failures.clear();
    for (let look = 0; look < 2; look += 1) await shown.catchUp();
    assert.deepEqual([done, tries() - before], [['a+b+c'], 2]);
  });

  it('begin with those that are mounted', async () => {
    const { shown, living } = setUp();
    living.push(live('a'), live('b', { health: 'failed', mount: undefined }));
    await shown.open();
    assert.deepEqual([...shown.entries.keys()], ['a']);
  });

  it('are compared with what a former daemon showed, also when they are added before that is known', async () => {
    const { shown, clock, done } = setUp(['/mnt/a', '/mnt/b']);
    const entry = (name: string): [string, Entry] => [name, { path: `/mnt/${name}`, readOnly: false }];
    const opening = shown.open(async () => {
      await new Promise((resolve) => setImmediate(resolve));
      return new Map(['a', 'b'].map(entry));
    });
    await Promise.all([opening, shown.add(spec('a'), mountOf('a'))]);
    assert.deepEqual([...shown.entries.keys()], ['a', 'b']);
    assert.deepEqual(done, [], 'nothing has changed for a client');
    await clock.advance(31_000);
    await shown.dropUnclaimed();
    assert.deepEqual(done, ['a changed b'], 'the one that was added is claimed');
  });

  it('do not come back when they are taken down while others are added', async () => {
    const { shown, living } = setUp();
    living.push(live('a'), live('b'));
    const opening = shown.open();
    living.splice(1, 1);
    await shown.remove('b');
    await opening;
    assert.deepEqual([...shown.entries.keys()], ['a']);
  });

  it('keep what a former daemon exported while it is mounted, and drop what nobody claims', async () => {
    const entry = (name: string): [string, Entry] => [name, { path: `/mnt/${name}`, readOnly: false }];
    const { shown, living, clock, done } = setUp(['/mnt/claimed', '/mnt/failing', '/mnt/forgotten']);
    await shown.open(() =>
      Promise.resolve(new Map(['claimed', 'failing', 'forgotten', 'unmounted'].map(entry))),
    );
    assert.deepEqual([...shown.entries.keys()], ['claimed', 'failing', 'forgotten']);
    await shown.add(spec('claimed'), mountOf('claimed'));
    living.push(live('failing', { health: 'failed', mount: undefined }), live('claimed'));
    await shown.dropUnclaimed();
    assert.deepEqual([...shown.entries.keys()], ['claimed', 'forgotten']);
    await clock.advance(31_000);
    await shown.dropUnclaimed();
    assert.deepEqual(done, ['claimed+forgotten changed failing', 'claimed changed forgotten']);
  });

  it('are worked on one after the other, and go on after one that went wrong', async () => {
    const { shown } = setUp();
    const order: string[] = [];
    const slow = shown.inTurn(async () => {
      await new Promise((resolve) => setImmediate(resolve));
      order.push('slow');
      throw new Error('failed');
    });
    const quick = shown.inTurn(async () => void order.push('quick'));
    await assert.rejects(slow, /failed/);
    await quick;
    assert.deepEqual(order, ['slow', 'quick']);
  });
});
