import assert from 'node:assert/strict';
import { chmod, chown, mkdir, readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { createProcesses } from '../../../../core/platform/processes/processes.ts';
import { leastRights, rootWith, serviceUser } from '../../../../core/platform/processes/rights.ts';
import type { ManagedProcess, ProcessSpec } from '../../../../core/contract/platform.ts';
import { programAt } from '../../../../plugins/discovery/wsdd.ts';
import { unlessRoot } from '../../../runner/skips.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { rightsOf, SERVICE_RIGHTS } from '../../../support/platform/rights.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';
import { until } from '../../../support/platform/wait.ts';

const NOTHING = '0'.repeat(16);

describe('what a child of a root daemon is left with', { skip: unlessRoot }, () => {
  let scratch: Scratch;
  before(async () => {
    scratch = await createScratch('rights');
  });
  after(() => scratch.close());

  const daemon = () =>
    createProcesses({ stateDir: scratch.path('state'), clock: createClock(), log: collectLog().log });
  const start = async (spec: Partial<ProcessSpec>): Promise<ManagedProcess> => {
    const started = await daemon().start({
      key: `rights/${Math.random()}`,
      command: 'sleep',
      args: ['600'],
      fingerprint: 'f',
      ...spec,
    });
    scratch.defer(() => started.stop({ graceMs: 0 }));
    const program = (): Promise<string> => readFile(`/proc/${started.pid}/comm`, 'utf8').catch(() => 'ended');
    await until('it has dropped what it had', async () => !/setpriv/.test(await program()), {
      timeoutMs: 20_000,
    });
    return started;
  };
  /** What a shell prints that has only these rights. */
  const said = async (script: string, spec: Partial<ProcessSpec>): Promise<string> => {
    const started = await start({ ...spec, command: 'sh', args: ['-c', script] });
    return (await started.exited).lastLines.join('\n');
  };
  const asUser = async () => ({ user: await serviceUser(), capabilities: [] });

  it('is asked of the machine once, where no file is part of the question', async () => {
    const { run } = daemon();
    let asked = 0;
    const counting = {
      run: (spec: Parameters<typeof run>[0]) => {
        asked += 1;
        return run(spec);
      },
    };
    const ask = () => rootWith({ processes: counting, capabilities: ['sys_admin'] });
    const all = await Promise.all([ask(), ask()]);
    assert.deepEqual([...all, await ask()], Array(3).fill({ capabilities: ['sys_admin'] }));
    assert.equal(asked, 1);
    await rootWith({ processes: counting, capabilities: ['sys_admin'], files: ['/etc/passwd'] });
    assert.equal(asked, 2);
  });

  it('is nothing, as a user of its own: no secret of the machine, no file elsewhere, no way back', async () => {
    const started = await start({ rights: await asUser() });
    assert.deepEqual(await rightsOf(started.pid), SERVICE_RIGHTS);
    await writeFile(scratch.path('taken'), '');
    const script = [
      'cat /etc/shadow',
      `echo x >>'${scratch.path('taken')}'`,
      `echo x >'/etc/mountkeeper-rights'`,
      `kill -0 ${process.pid}`,
      'setpriv --reuid=0 true',
    ]
      .map((one) => `{ (${one}) >/dev/null 2>&1 && echo done || echo refused; }`)
      .join('; ');
    assert.equal(await said(script, { rights: await asUser() }), Array(5).fill('refused').join('\n'));
    assert.equal(await said('echo "$PATH" | wc -l; id -u', {}), '1\n0', 'without rights it is as the daemon');
  });

  it('has the folders that were opened for it, though it may not walk down to them', async () => {
    const shut = scratch.path('shut');
    for (const name of ['', '/given', '/other']) await mkdir(shut + name, { mode: 0o700 });
    const { uid = 0, gid = 0 } = (await serviceUser()) ?? {};
    await chown(`${shut}/given`, uid, gid);
    const spec = { rights: await asUser(), folders: [`${shut}/given`, `${shut}/other`] };
    const script = [
      'echo kept >/proc/self/fd/4/file; cat /proc/self/fd/4/file',
      `cat ${shut}/given/file 2>/dev/null || echo shut`,
      'cat /proc/self/fd/4/../other 2>/dev/null || echo no way out',
      'ls /proc/self/fd/5/ >/dev/null 2>&1 || echo not its own',
    ].join('; ');
    assert.equal(await said(script, spec), 'kept\nshut\nno way out\nnot its own');
    assert.equal(await readFile(`${shut}/given/file`, 'utf8'), 'kept\n');
  });

  it('keeps what it was said to need, for either user, and is adopted by the next daemon', async () => {
    const bind = '0000000000000400';
    const { user } = await asUser();
    const capabilities = ['net_bind_service'];
    const key = 'rights/kept';
    const started = await start({ key, rights: { user, capabilities } });
    assert.deepEqual((await rightsOf(started.pid)).capabilities, Array(5).fill(bind));
    const asRoot = await start({ rights: { capabilities } });
    const { users, capabilities: kept } = await rightsOf(asRoot.pid);
    assert.deepEqual([users, kept], ['0 0 0 0', [NOTHING, bind, bind, bind, NOTHING]]);
    assert.equal((await daemon().adopt(key))?.pid, started.pid);
  });

  it('is, where it stays root, no look into the daemon, and no file of somebody else', async () => {
    const shut = scratch.path('somebody');
    await writeFile(shut, '', { mode: 0o600 });
    await chown(shut, 12_345, 12_345);
    const rights = await rootWith({ processes: daemon(), capabilities: ['sys_admin'] });
    const script = [`exec 3</proc/${process.pid}/mem`, `cat '${shut}'`, 'mknod null c 1 3']
      .map((one) => `{ (${one}) >/dev/null 2>&1 && echo done || echo refused; }`)
      .join('; ');
    const cwd = scratch.root;
    assert.equal(await said(script, { rights, cwd }), Array(3).fill('refused').join('\n'));
    assert.equal(await said(script, { cwd }), Array(3).fill('done').join('\n'));
  });

  it('is nothing of another such child, as long as their groups differ', async () => {
    const { pid } = await start({ rights: await asUser() });
    const { rights = { capabilities: [] } } = await programAt('/bin/sh', daemon());
    assert.equal(rights.user?.uid, (await serviceUser())?.uid);
    const script = `cat /proc/${pid}/environ /proc/${pid}/maps 2>/dev/null || echo refused`;
    assert.equal(await said(script, { rights }), 'refused');
  });

  it('is the least that this machine can start the program with', async () => {
    const user = await serviceUser();
    const file = scratch.path('program');
    await writeFile(file, '');
    const found = (processes: Parameters<typeof leastRights>[0]['processes'] = daemon()) =>
      leastRights({ processes, capabilities: [], files: [process.execPath, file] });
    await chmod(scratch.root, 0o755);
    await chmod(file, 0o644);
    assert.deepEqual(await found(), { user, capabilities: [] });
    await chmod(file, 0o600);
    assert.deepEqual(await found(), { capabilities: [] }, 'it cannot read its program as that user');
    assert.equal(await found({ run: () => Promise.reject(new Error('no setpriv')) }), undefined);
  });

  it('is no user that is root, or that is not there', async () => {
    const passwd = scratch.path('passwd');
    const read = async (line: string) => {
      await writeFile(passwd, `root:x:0:0::/:/bin/sh\n${line}\nlast:x:7:8::/:\n`);
      return serviceUser(passwd);
    };
    assert.deepEqual(await read('mountkeeper:x:990:991::/nonexistent:/usr/sbin/nologin'), {
      uid: 990,
      gid: 991,
    });
    for (const line of ['mountkeeper:x:0:0::/:', 'mountkeeper:x::5::/:', 'mountkeeper2:x:990:991::/:'])
      assert.equal(await read(line), undefined, line);
  });
});
