/** What `mountkeeper doctor` finds of a stranger's plugin whose process has the daemon's own user. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { runDoctor } from '../../../core/cli/doctor-command.ts';
import { openOffline } from '../../../core/cli/offline.ts';
import { everyUserHere } from '../../../core/cli/plugin/install/every-user.ts';
import { parseArguments } from '../../../core/cli/arguments.ts';
import type { Terminal } from '../../../core/cli/terminal.ts';
import type { Check } from '../../../core/contract/notifications.ts';
import type { Permission } from '../../../core/contract/services.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { place, source } from '../../support/plugins/strangers.ts';

/** Where no program can change its user, a root daemon's plugins have its user, as those of every other daemon. */
async function withoutUsers(scratch: Scratch): Promise<() => void> {
  const usual = process.env['PATH'];
  await mkdir(scratch.path('bin'));
  await writeFile(scratch.path('bin', 'setpriv'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  process.env['PATH'] = `${scratch.path('bin')}:${usual}`;
  return () => {
    process.env['PATH'] = usual;
  };
}

async function found(scratch: Scratch, password: string, isolation = 'own'): Promise<readonly Check[]> {
  const configFile = scratch.path('mountkeeper.toml');
  await writeFile(
    configFile,
    `connections = []\n[web]\nport = ${await freePort()}\npassword = "${password}"\n` +
      `[supervisor]\nstate_dir = "${scratch.path('state')}"\n[plugins]\ndirs = ["${scratch.path('plugins')}"]\n` +
      `[plugins.garden]\nenabled = true\nisolation = "${isolation}"\n[plugins.pond]\nenabled = true\n`,
  );
  const offline = await openOffline(configFile);
  const printed: string[] = [];
  const terminal = { print: (text: string) => void printed.push(text) } as unknown as Terminal;
  try {
    await runDoctor({ args: parseArguments(['doctor', '--json']), configFile, terminal, offline });
  } finally {
    await offline.close();
  }
  const checks = JSON.parse(printed.join('')) as readonly Check[];
  return checks.filter(({ detail }) => /over HTTP it may change the configuration/.test(detail));
}

describe('a plugin with the network whose process has the user of the daemon', { timeout: 120_000 }, () => {
  it('is named by doctor with what to do, as long as nobody is asked for a password', async (t) => {
    const scratch = await createScratch('doctor');
    t.after(() => scratch.close());
    t.after(await withoutUsers(scratch));
    await place(scratch, 'garden', source('garden', ''), { permissions: ['network'] });
    await place(scratch, 'pond', source('pond', ''), { permissions: ['own-files'] });
    const [check, ...others] = await found(scratch, '');
    assert.deepEqual([check?.title, check?.result, others], ['permissions of garden', 'warning', []]);
    assert.match(
      check?.advice ?? '',
      /^set web\.password, or take "network" out of the permissions in its package/,
    );
    assert.deepEqual(await found(scratch, 'wonderland'), []);
    assert.deepEqual(await found(scratch, '', 'none'), [], 'inside the daemon it may do everything');
  });

  it('is told of where it is installed, in one sentence', async (t) => {
    const scratch = await createScratch('told');
    t.after(() => scratch.close());
    const peeked = { stateDir: scratch.path('state'), isAnybodyAsked: false, isolation: new Map() };
    const claim = { name: 'garden', permissions: ['network'] as readonly Permission[] };
    t.after(await withoutUsers(scratch));
    assert.match(
      (await everyUserHere(claim, peeked)) ?? '',
      /^over HTTP it may change the configuration, .*; set web\.password, or take "network" out/,
    );
    assert.equal(await everyUserHere({ ...claim, permissions: ['files'] }, peeked), undefined);
    assert.equal(await everyUserHere(claim, { ...peeked, isAnybodyAsked: true }), undefined);
    const isolation = new Map([['garden', 'none' as const]]);
    assert.equal(await everyUserHere(claim, { ...peeked, isolation }), undefined);
  });
});
