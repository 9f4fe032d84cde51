/** Real runners as a user of their own, and what the kernel lets them do; what they keep goes to that user and back. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstat, mkdir, readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import type { Permission } from '../../../../../core/contract/services.ts';
import { serviceUser } from '../../../../../core/platform/processes/rights.ts';
import { packageDir, stagePlugin } from '../../../../../core/plugins/discovery/stage.ts';
import { ownFolder } from '../../../../../core/plugins/runner/process/confinement.ts';
import type { SpaceLimit } from '../../../../../core/plugins/runner/process/own-space.ts';
import { lendOwnFolder, runnerUser, showCopy } from '../../../../../core/plugins/runner/process/own-user.ts';
import type { RunnerUser } from '../../../../../core/plugins/runner/process/own-user.ts';
import { unlessRoot } from '../../../../runner/skips.ts';
import { collectLog } from '../../../../support/platform/collected-log.ts';
import { letOthersEnter } from '../../../../support/platform/folder-access.ts';
import { createScratch } from '../../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../../support/platform/scratch-folder.ts';
import { until } from '../../../../support/platform/wait.ts';
import { outsidePid, SELF } from '../../../../support/plugins/outside-pid.ts';
import type { InsidePid } from '../../../../support/plugins/outside-pid.ts';
import { supervisorOf } from '../../../../support/plugins/supervised-runner.ts';

interface Traits {
  readonly as: RunnerUser['user'];
  readonly permissions: readonly Permission[];
  readonly space?: SpaceLimit;
}

const ALL: readonly Permission[] = ['network', 'own-files', 'files', 'processes'];
const source = (name: string, body: string): string => `import { definePlugin } from 'mountkeeper';
import fs from 'node:fs';
const done = (deed) => { try { deed(); return 'done'; } catch (error) { return error.code ?? String(error); } };
void [fs, done];
export default definePlugin({ name: '${name}', version: '1.0.0', apiVersion: 1, description: 'Tries.',
  requires: ['store'],
  register(ctx) { ctx.effect('deeds', async () => {
    ctx.log.info(JSON.stringify(await (async () => { ${body} })())); return () => undefined; }); } });
`;

describe('a runner beside a daemon that is root', { skip: unlessRoot, timeout: 120_000 }, () => {
  let scratch: Scratch;
  let stateDir: string;
  let user: RunnerUser['user'];
  let stubs = 0;
  before(async () => {
    scratch = await createScratch('own-user');
    // The user walks down to the state folder, which is shut.
    await letOthersEnter(scratch.root);
    stateDir = scratch.path('state');
    const found = await runnerUser(stateDir);
    assert.equal(found.why, undefined);
    user = found.user;
    await writeFile(`${stateDir}/secret`, 'of the state folder', { mode: 0o644 });
  });
  after(() => scratch.close());

  async function staged(name: string, body: string, { as, permissions }: Omit<Traits, 'space'>) {
    await mkdir(scratch.path('sources', name), { recursive: true });
    await writeFile(scratch.path('sources', name, 'package.json'), '{ "type": "module" }');
    await writeFile(scratch.path('sources', name, 'index.js'), source(name, body));
    const { folder } = await stagePlugin(scratch.path('sources', name), name, stateDir);
    if (as) await showCopy(folder, as);
    const entry = `${folder}/index.js`;
    return { entry, folder, permissions, name, stateDir, packageDir, user: as };
  }

  /** What the plugin's only effect says, and its process, which lives on. */
  async function begun<T>(name: string, body: string, traits: Traits = { as: user, permissions: ALL }) {
    const { space, ...more } = traits;
    const confinement = await staged(name, body, more);
    const { log, entries } = collectLog();
    const supervisor = supervisorOf({ log }, confinement, space && { space });
    scratch.defer(() => supervisor.stop('shutdown'));
    await supervisor.start();
    return { supervisor, entries, said: JSON.parse(String(entries[0]?.msg)) as T };
  }

  it('has a user that is neither root nor the one that serves the network, and nothing of theirs', async () => {
    const { uid = 0, gid = 0 } = (await serviceUser()) ?? {};
    // As the WebDAV proxy is.
    const server = spawn('sleep', ['600'], { uid, gid, stdio: 'ignore' });
    scratch.defer(() => server.kill('SIGKILL'));
    await once(server, 'spawn');
    const give = await lendOwnFolder({ stateDir, name: 'tries' }, user);
    const { supervisor, said } = await begun<Record<string, unknown>>(
      'tries',
      `return {
        user: process.getuid(), groups: process.getgroups(), self: ${SELF},
        kept: done(() => fs.writeFileSync('${stateDir}/store/tries/file', 'x')),
        shadow: done(() => fs.readFileSync('/etc/shadow')),
        state: done(() => fs.readFileSync('${stateDir}/secret')),
        beside: done(() => fs.writeFileSync('${stateDir}/store/other', 'x')),
        code: done(() => fs.writeFileSync(new URL('x.js', import.meta.url), 'x')),
        etc: done(() => fs.writeFileSync('/etc/mountkeeper-tries', 'x')),
        signal: done(() => process.kill(${process.pid}, 0)),
        server: ['environ', 'mem', 'maps'].map((name) =>
          done(() => fs.readFileSync('/proc/${server.pid}/' + name))),
        serverSignal: done(() => process.kill(${server.pid}, 0)),
        memory: done(() => fs.openSync('/proc/${process.pid}/mem', 'r')),
        names: fs.readdirSync('${stateDir}'),
      };`,
    );
    const { self, groups, ...rest } = said;
    assert.deepEqual(rest, {
      user: user?.uid,
      kept: 'done',
      shadow: 'EACCES',
      state: 'ENOENT',
      beside: 'EACCES',
      code: 'EACCES',
      etc: 'EACCES',
      // Processes of others are none there.
      signal: 'ESRCH',
      server: ['ENOENT', 'ENOENT', 'ENOENT'],
      serverSignal: 'ESRCH',
      memory: 'ENOENT',
      names: ['plugins', 'store'],
    });
    assert.ok((groups as number[]).includes(user?.gid ?? 0));
    const status = await readFile(`/proc/${outsidePid(self as InsidePid)}/status`, 'utf8');
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      assert.match(status, new RegExp(`^${set}:\\s+0+$`, 'm'));
    assert.match(status, /^NoNewPrivs:\s+1$/m);
    await supervisor.stop('shutdown');
    await give();
  });

  it('reads neither the memory nor the folder of another one', async () => {
    await lendOwnFolder({ stateDir, name: 'first' }, user);
    const { said: first } = await begun<InsidePid>('first', `return ${SELF};`);
    const pid = outsidePid(first);
    const { said } = await begun<string[]>(
      'second',
      `return ['environ', 'mem', 'fd/3', 'root/etc/passwd'].map((name) =>
        done(() => fs.readFileSync('/proc/${String(pid)}/' + name)))
        .concat(done(() => fs.readdirSync('${stateDir}/store/first')));`,
    );
    assert.deepEqual(said, ['ENOENT', 'ENOENT', 'ENOENT', 'ENOENT', 'ENOENT']);
  });

  it('neither ends nor stops another one: it does not see it', async () => {
    const { said: innocent } = await begun<InsidePid>('innocent', `return ${SELF};`);
    const pid = outsidePid(innocent);
    const { said } = await begun<Record<string, unknown>>(
      'shoots',
      `return {
        kills: done(() => process.kill(${pid}, 'SIGKILL')), stops: done(() => process.kill(${pid}, 'SIGSTOP')),
        all: done(() => process.kill(-1, 'SIGKILL')),
        seen: fs.readdirSync('/proc').filter((one) => Number(one) && Number(one) !== process.pid),
      };`,
    );
    // The shell that started it, which ends what has no parent any more.
    assert.deepEqual(said, { kills: 'ESRCH', stops: 'ESRCH', all: 'ESRCH', seen: ['1'] });
    assert.match(await readFile(`/proc/${pid}/stat`, 'latin1'), /\) [SR] /);
  });

  it('is kept from others by its user and group where it can have no processes of its own', async (t) => {
    const { PATH = '' } = process.env;
    await useUnshare(t, `case " $* " in *' --pid '*) exit 1 ;; esac; PATH='${PATH}'; exec unshare "$@"`);
    const { uid = 0, gid = 0 } = (await serviceUser()) ?? {};
    // As the WebDAV proxy is.
    const server = spawn('sleep', ['600'], { uid, gid, stdio: 'ignore' });
    scratch.defer(() => server.kill('SIGKILL'));
    await once(server, 'spawn');
    const { said: beside } = await begun<number>('beside', 'return process.pid;');
    const { said } = await begun<Record<string, unknown>>(
      'unseen',
      `const reads = (pid, names) => names.map((name) => done(() => fs.readFileSync('/proc/' + pid + '/' + name)));
      return {
        signal: done(() => process.kill(${process.pid}, 0)),
        memory: done(() => fs.openSync('/proc/${process.pid}/mem', 'r')),
        server: reads(${server.pid}, ['environ', 'mem', 'maps']),
        serverSignal: done(() => process.kill(${server.pid}, 0)),
        beside: reads(${beside}, ['environ', 'mem', 'fd/3', 'root/etc/passwd']),
      };`,
    );
    assert.deepEqual(said, {
      signal: 'EPERM',
      memory: 'EACCES',
      server: ['EACCES', 'EACCES', 'EACCES'],
      serverSignal: 'EPERM',
      beside: ['EACCES', 'EACCES', 'EACCES', 'EACCES'],
    });
  });

  /** Away from its session, its parents and its mark. */
  const ESCAPES = `const { execFileSync } = await import('node:child_process');
      const start = '(setsid env -i sleep 61.7 >/dev/null 2>&1 & echo $!)';
      return [Number(execFileSync('/bin/sh', ['-c', start], { encoding: 'utf8' })), ${SELF}[1]];`;
  const isSleeping = async (pid: number): Promise<boolean> =>
    (await readFile(`/proc/${String(pid)}/cmdline`, 'utf8').catch(() => '')).startsWith('sleep');

  it('takes along what has a session of its own, no parent and nothing in its environment', async () => {
    const { supervisor, said } = await begun<InsidePid>('escapes', ESCAPES);
    const pid = outsidePid(said);
    await until('it has begun', () => isSleeping(pid), { timeoutMs: 20_000 });
    await supervisor.stop('disable');
    await until('it has ended', async () => !(await isSleeping(pid)), { timeoutMs: 5_000 });
  });

  it('takes that along also when the daemon is killed', async () => {
    const confinement = await staged('flees', ESCAPES, { as: user, permissions: ALL });
    const support = new URL('../../../../support/', import.meta.url).href;
    const script = `
      import { collectLog } from '${support}platform/collected-log.js';
      import { supervisorOf } from '${support}plugins/supervised-runner.js';
      const { log, entries } = collectLog();
      await supervisorOf({ log }, ${JSON.stringify(confinement)}).start();
      console.log(entries[0].msg);`;
    const daemon = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    scratch.defer(() => daemon.kill('SIGKILL'));
    const pid = outsidePid(JSON.parse(String((await once(daemon.stdout, 'data'))[0])) as InsidePid);
    await until('it has begun', () => isSleeping(pid), { timeoutMs: 20_000 });
    daemon.kill('SIGKILL');
    await until('it has ended', async () => !(await isSleeping(pid)), { timeoutMs: 20_000 });
  });

  it('finds what it kept as root, and as root what it kept since', async () => {
    const count = `const seen = await ctx.use('store').open('seen', { version: 1, initial: 0 });
      await seen.save(seen.value + 1); return seen.value;`;
    const folder = ownFolder({ stateDir, name: 'counts' });
    const once = async (as: RunnerUser['user']): Promise<readonly [value: number, owner: number]> => {
      const giveBack = await lendOwnFolder({ stateDir, name: 'counts' }, as);
      const { supervisor, said } = await begun<number>('counts', count, { as, permissions: ['own-files'] });
      await supervisor.stop('shutdown');
      const { uid } = await lstat(`${folder}/seen.json`);
      await giveBack();
      return [said, uid];
    };
    assert.deepEqual(await once(undefined), [1, 0]);
    assert.deepEqual(await once(user), [2, user?.uid]);
    assert.equal((await lstat(`${folder}/seen.json`)).uid, 0);
    assert.deepEqual(await once(undefined), [3, 0]);
    // A daemon that was killed has given nothing back.
    await lendOwnFolder({ stateDir, name: 'counts' }, user);
    assert.deepEqual(await once(undefined), [4, 0]);
  });

  it('keeps all that it has where it is lent anew while it is still given back', async () => {
    const folder = ownFolder({ stateDir, name: 'again' });
    await mkdir(folder, { recursive: true });
    const files = Array.from({ length: 200 }, (_, index) => `${folder}/${String(index)}`);
    await Promise.all(files.map((file) => writeFile(file, 'kept')));
    const giveBack = await lendOwnFolder({ stateDir, name: 'again' }, user);
    await Promise.all([giveBack(), lendOwnFolder({ stateDir, name: 'again' }, user)]);
    for (const file of [folder, ...files]) assert.equal((await lstat(file)).uid, user?.uid, file);
  });

  it('holds no mount of a share', async () => {
    const parts = ['lower', 'upper', 'work', 'at'];
    for (const name of parts) await mkdir(scratch.path(name));
    const [lower = '', upper = '', work = '', at = ''] = parts.map((name) => scratch.path(name));
    const options = `lowerdir=${lower},upperdir=${upper},workdir=${work}`;
    execFileSync('mount', ['-t', 'overlay', '-o', options, 'mountkeeper', at]);
    let pid = 0;
    try {
      pid = outsidePid((await begun<InsidePid>('holds', `return ${SELF};`)).said);
    } finally {
      execFileSync('umount', [at]);
    }
    assert.doesNotMatch(await readFile(`/proc/${pid}/mountinfo`, 'utf8'), new RegExp(`${at} `));
  });

  it('is root without capabilities where the machine has no such user, or lets it read nothing', async () => {
    await writeFile(scratch.path('passwd'), 'mountkeeper:x:999:993::/:\n');
    assert.deepEqual(await runnerUser(stateDir, scratch.path('passwd')), {
      why: 'there is no user mountkeeper-plugins here',
    });
    await mkdir(scratch.path('shut'), { mode: 0o700 });
    const { user: none, why = '' } = await runnerUser(scratch.path('shut/state'));
    assert.equal(none, undefined);
    assert.match(why, /^it may not read .*shut\/state\/plugins\/node_modules\/mountkeeper\/package\.json$/);
  });

  it('has a reason to say where what tries it out ends without a word', async (t) => {
    await useUnshare(t, 'exit 1');
    assert.deepEqual(await runnerUser(stateDir), { why: 'unshare fails' });
  });

  it('leaves no zombie of what has lost its parent', async () => {
    const { said } = await begun<readonly string[]>(
      'orphans',
      `const { execFileSync } = await import('node:child_process');
      const start = 'for one in $(seq 20); do (sleep 0.1 >/dev/null 2>&1 &); done';
      execFileSync('/bin/sh', ['-c', start]);
      const stat = (pid) => { try { return fs.readFileSync('/proc/' + pid + '/stat', 'utf8'); } catch { return ''; } };
      const left = () => fs.readdirSync('/proc').filter(Number).map(stat).filter((one) => one.includes('(sleep)'));
      const begunAt = Date.now();
      while (left().length > 0 && Date.now() < begunAt + 3_000) await new Promise((done) => setTimeout(done, 20));
      return left();`,
    );
    assert.deepEqual(said, []);
  });

  const causeIn = (entries: readonly Readonly<Record<string, unknown>>[]) =>
    until('its end is told of', () => entries.find(({ reason }) => typeof reason === 'string')?.['reason'], {
      timeoutMs: 30_000,
    }) as Promise<string>;

  it('is said to have been ended by the signal that has ended it', async () => {
    const { said, entries } = await begun<InsidePid>('dies', `return ${SELF};`);
    process.kill(outsidePid(said), 'SIGKILL');
    assert.equal(await causeIn(entries), 'it was ended by SIGKILL');
  });

  it('is said to be stopped where a signal has stopped it', async () => {
    const { said, entries } = await begun<InsidePid>('stands', `return ${SELF};`);
    process.kill(outsidePid(said), 'SIGSTOP');
    assert.match(await causeIn(entries), /^it did not answer for 10 s: a signal has stopped it/);
  });

  it('is ended for what it holds open in its folder that has no name any more', async () => {
    const giveBack = await lendOwnFolder({ stateDir, name: 'hides' }, user);
    const { entries } = await begun<string>(
      'hides',
      `const name = '${stateDir}/store/hides/nameless';
      const file = fs.openSync(name, 'w');
      fs.unlinkSync(name);
      fs.writeSync(file, Buffer.alloc(3_000_000, 1));
      return 'done';`,
      { as: user, permissions: ['own-files'], space: { mostBytes: 2_097_152, mostFiles: 50, everyMs: 1 } },
    );
    assert.match(
      await causeIn(entries),
      /^it keeps more than 2 MiB .* \(3 MiB in open files that have no name/,
    );
    await giveBack();
  });

  it('has few open files, and with all others a limit of processes that is far below what there is', async () => {
    const { said } = await begun<string>('counts', "return fs.readFileSync('/proc/self/limits', 'utf8');");
    const limitsOf = (what: string): readonly number[] =>
      new RegExp(`^Max ${what} +(\\d+) +(\\d+) `, 'm').exec(said)?.slice(1).map(Number) ?? [];
    assert.deepEqual(limitsOf('open files'), [1_024, 1_024]);
    const [soft = 0, hard] = limitsOf('processes');
    assert.equal(soft, hard);
    const threads = Number(await readFile('/proc/sys/kernel/threads-max', 'utf8'));
    assert.ok(soft > 11 && soft <= Math.min(1_000, threads / 20), said);
  });

  /** Puts a command of that name before the machine's. */
  async function useUnshare(t: TestContext, script: string): Promise<void> {
    const folder = scratch.path(`unshare-${String((stubs += 1))}`);
    await mkdir(folder);
    await writeFile(`${folder}/unshare`, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const { PATH = '' } = process.env;
    t.after(() => (process.env['PATH'] = PATH));
    process.env['PATH'] = `${folder}:${PATH}`;
  }
});
