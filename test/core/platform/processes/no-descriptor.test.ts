/** A daemon that can open no more files goes on, and loses nothing that it had. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { withoutDescriptors } from '../../../support/platform/without-descriptors.ts';

const clock = { createClock: 'core/platform/clock.js' };

describe('without a free file descriptor', () => {
  it('no command starts, and who asked for it is told', async () => {
    const modules = {
      ...clock,
      runShortCommand: 'core/platform/processes/short-command.js',
    };
    const script = `
      const spec = { command: '/bin/true', args: [], timeoutMs: 5_000 };
      console.log(await failure(runShortCommand(spec, createClock())));`;
    assert.deepEqual(await withoutDescriptors(modules, { script }), [
      'Error: spawn /bin/true EMFILE',
      'lives',
    ]);
  });

  it('no mount is looked at, and who asked for it is told', async () => {
    const modules = {
      ...clock,
      createMountProbe: 'core/platform/mounts/mount-probe.js',
    };
    const script = `
      const probe = createMountProbe({ clock: createClock(), log: {} });
      console.log(await failure(probe.touch('/', 5_000)));`;
    assert.deepEqual(await withoutDescriptors(modules, { script }), [
      'the helper that looks at mounts cannot be started',
      'lives',
    ]);
  });

  it("no plugin's module is tried, and who asked for it is told", async () => {
    const modules = { preflight: 'core/plugins/discovery/preflight.js' };
    const script = `
      const request = { entry: '/nowhere.js', name: 'nowhere', declared: {}, timeoutMs: 5_000 };
      console.log(await failure(preflight(request)));`;
    const [told, ...others] = await withoutDescriptors(modules, { script });
    assert.match(told ?? '', /EMFILE/);
    assert.deepEqual(others, ['lives']);
  });

  it('a process that lives is not taken for one that has ended', async () => {
    const modules = {
      ...clock,
      'isRunning, readProcStat': 'core/platform/processes/proc-stat.js',
      createExitWatch: 'core/platform/processes/exit-watch.js',
    };
    const before = 'const self = { pid: process.pid, startTicks: readProcStat(process.pid).startTicks };';
    const script = `
      createExitWatch(createClock()).add(self, () => console.log('has ended'));
      console.log(isRunning(self), readProcStat(self.pid));`;
    assert.deepEqual(await withoutDescriptors(modules, { before, script }), ['true undefined', 'lives']);
  });
});
