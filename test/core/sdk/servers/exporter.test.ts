import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { createTestHost } from 'mountkeeper/testing';
import { definePlugin, exporterOf, provideExporter } from 'mountkeeper';
import type { ExporterParts, ManagedServer, Mount, ExportTable } from 'mountkeeper';
import { FakeMount, planOf, spec } from '../../../support/shares/fake-shares.ts';

interface Entry {
  readonly path: string;
}

const mount: Mount = new FakeMount(planOf(spec('a')), 'a');

function setUp(change: Partial<ExporterParts<Entry>> = {}) {
  const done: string[] = [];
  const state = { problem: undefined as string | undefined, isStarting: false, isAnswering: true };
  const did = (what: string) => async (): Promise<void> => void done.push(what);
  const server: ManagedServer = {
    process: undefined,
    get problem() {
      return state.problem;
    },
    get isStarting() {
      return state.isStarting;
    },
    get isAnswering() {
      return state.isAnswering;
    },
    start: () => void done.push('start'),
    renew: () => undefined,
    look: did('ask'),
    release: did('release'),
    stop: did('stop'),
  };
  const shown: ExportTable<Entry> = {
    entries: new Map(),
    inTurn: (work) => work(),
    redescribe: did('redescribe'),
    dropUnclaimed: did('drop'),
    catchUp: did('catch up'),
    open: async (former) =>
      void done.push(`open with ${[...((await former?.()) ?? new Map()).keys()].join()}`),
    add: async ({ share }) => void done.push(`add ${share.name}`),
    remove: async (share) => void done.push(`remove ${share}`),
    notices: () => [{ level: 'warning', message: 'a is not shown' }],
  };
  return { done, state, exporter: exporterOf<Entry>({ label: 'FTP', server, shown, ...change }) };
}

describe('an exporter with a server', () => {
  it('starts from what a former daemon left, takes shares, is looked after, and goes or is left', async () => {
    const { exporter, done } = setUp({
      former: async () => new Map([['old', { path: '/mnt/old' }]]),
      beforeLook: () => void done.push('before'),
    });
    await exporter.open();
    await exporter.add(spec('a'), mount);
    await exporter.look(new AbortController().signal);
    await exporter.remove('a');
    await exporter.close(true);
    await exporter.close(false);
    assert.deepEqual(done, [
      'open with old',
      'start',
      'add a',
      'drop',
      'catch up',
      'before',
      'ask',
      'remove a',
      'release',
      'stop',
    ]);
  });

  it('shows nothing, ends what is left and says nothing while it is switched off', async () => {
    const { exporter, done } = setUp({ isEnabled: false });
    await exporter.open();
    await exporter.add(spec('a'), mount);
    await exporter.look(new AbortController().signal);
    await exporter.close(true);
    assert.deepEqual(done, ['stop', 'stop']);
    assert.deepEqual([exporter.notices(), exporter.offers?.(), exporter.isServing], [[], [], false]);
  });

  it('does not say that nobody comes in while its server is still to be stopped', async () => {
    let isMeant = true;
    const enforce = (): Promise<void> => Promise.resolve();
    const { exporter } = setUp({ enforce, isMeant: () => isMeant });
    await exporter.enforce?.();
    isMeant = false;
    await assert.rejects(async () => exporter.enforce?.(), /being stopped/);
    const { exporter: next } = setUp({ enforce, isMeant: () => isMeant, isEnabled: false });
    await assert.rejects(async () => next.enforce?.(), /being stopped/);
    await next.open();
    await next.enforce?.();
  });

  it('says why its server does not serve, and offers nothing while clients would be refused', () => {
    let isComplete = true;
    const offer = { service: '_ftp._tcp', port: 21, addresses: ['0.0.0.0'] };
    const { exporter, state } = setUp({
      notices: () => [{ level: 'warning', message: 'nobody may log in' }],
      offers: () => [offer],
      isServing: () => isComplete,
    });
    const said = () => exporter.notices().map(({ level, message }) => `${level}: ${message}`);
    assert.deepEqual(
      [said(), exporter.offers?.(), exporter.isServing],
      [['warning: nobody may log in', 'warning: a is not shown'], [offer], true],
    );
    isComplete = false;
    assert.deepEqual([exporter.offers?.(), exporter.isServing], [[], false]);
    Object.assign(state, { problem: 'its port is taken', isStarting: true });
    assert.equal(said()[0], 'info: FTP: its port is taken');
    state.isStarting = false;
    assert.equal(said()[0], 'error: FTP: its port is taken');
  });
});

describe('a plugin that provides an exporter', () => {
  const start = async (t: TestContext, isEnabled = true) => {
    const { exporter, done } = setUp();
    let made = () => undefined as typeof exporter | undefined;
    const plugin = definePlugin({
      name: 'ftp',
      version: '1.0.0',
      apiVersion: 1,
      description: 'Shows shares over FTP.',
      register(ctx) {
        made = provideExporter(ctx, {
          protocol: 'ftp',
          server: 'FTP server',
          make: () => exporter,
          isEnabled: () => isEnabled,
        });
      },
    });
    const host = await createTestHost({ plugins: [plugin], config: { plugins: { ftp: { enabled: true } } } });
    t.after(() => host.close());
    return { host, done, made: () => made(), exporter };
  };

  it('brings it up with itself, has it looked after every 3 s, and ends it when it goes', async (t) => {
    const { host, done, made, exporter } = await start(t);
    assert.equal(made(), exporter);
    assert.deepEqual(done, ['open with ', 'start']);
    await host.advance(3_000);
    assert.deepEqual(done.slice(2), ['drop', 'catch up', 'ask']);
    await host.close();
    assert.equal(done.at(-1), 'stop');
  });

  it('looks after nothing while that is switched off', async (t) => {
    const { host, done } = await start(t, false);
    await host.advance(10_000);
    assert.equal(done.includes('ask'), false);
  });
});
