/** What the maintainer scripts do with the service in an upgrade, by a systemctl that is nothing but a few files. */
import assert from 'node:assert/strict';
import { chmod, link, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, afterEach, describe, it } from 'node:test';
import { PROJECT } from '../runner/test-files.ts';
import { run } from '../support/package/build-packages.ts';

const DEBIAN = `${PROJECT}config/debian/`;

/**
 * `state`, `status`, `load`, `jobs`: what it says of the unit. `runs`: the version that was started last.
 * `signal`: what the script that calls it gets when it ends the daemon.
 */
const SYSTEMCTL = `
cd HOUSE
printf '%s\\n' "$*" >>asked
set_state() { printf '%s' "$1" >state; }
case "$*" in
  'is-active '*) grep -qx active state ;;
  *ActiveState*) cat state ;;
  *ExecMainStatus*) cat status ;;
  *LoadState*) cat load ;;
  *MainPID*) if grep -qxE 'active|deactivating' state; then echo 7; else echo 0; fi ;;
  'list-jobs '*) cat jobs ;;
  # Before 252 it knows no such option.
  'kill --kill-whom='*) exit 1 ;;
  'kill '*)
    # The script gets a signal before the daemon has ended, or after it.
    if [ -s signal ] && read -r signal when <signal; then
      : >signal
      [ "$when" = before ] || set_state inactive
      kill -s "$signal" $PPID
    else
      ! grep -qx active state || set_state inactive
    fi ;;
  'start '*)
    grep -qx active state && exit 0
    lib=usr/lib/mountkeeper
    [ ! -r "$lib.former/instead-of" ] || lib=$lib.former
    cat "$lib/version" >runs
    ln -f "$lib/bin/node" proc/7/exe
    if grep -q broken "$lib/version"; then set_state failed; exit 1; fi
    set_state active ;;
esac
`;

const STUBS: Readonly<Record<string, string>> = {
  systemctl: SYSTEMCTL,
  'deb-systemd-invoke': 'exec systemctl "$@"',
  'deb-systemd-helper': '',
  'systemd-sysusers': '',
  'systemd-tmpfiles': '',
  'dpkg-query': 'cat HOUSE/usr/lib/mountkeeper/version',
  sleep: '',
  timeout: 'shift; exec "$@"',
};

describe('an upgrade of the Debian package', () => {
  let house: string;
  const at = (path: string): string => join(house, path);
  const put = (path: string, text: string): Promise<void> => writeFile(at(path), text);
  const read = (path: string): Promise<string> => readFile(at(path), 'utf8');

  beforeEach(async () => {
    house = await mkdtemp(join(tmpdir(), 'mountkeeper-upgrades-'));
    const folders = [
      'bin',
      'etc/mountkeeper',
      'run/systemd/system',
      'usr/lib/mountkeeper/bin',
      'usr/sbin',
      'proc/7',
    ];
    for (const folder of [...folders, 'var/lib/mountkeeper', 'var/cache/mountkeeper', 'mnt/mountkeeper'])
      await mkdir(at(folder), { recursive: true });
    for (const [name, text] of Object.entries(STUBS)) await stub(`bin/${name}`, text);
    for (const [name, text] of Object.entries({
      state: 'active',
      status: '0',
      load: 'loaded',
      runs: '1',
      asked: '',
      jobs: '',
      'etc/mountkeeper/mountkeeper.toml': '',
      'usr/lib/mountkeeper/version': '1',
      'usr/lib/mountkeeper/bin/node': '1',
    }))
      await put(name, text);
    await link(at('usr/lib/mountkeeper/bin/node'), at('proc/7/exe'));
  });
  afterEach(() => rm(house, { recursive: true, force: true }));

  async function stub(path: string, text: string): Promise<void> {
    await put(path, `#!/bin/sh\n${text.replaceAll('HOUSE', house)}\n`);
    await chmod(at(path), 0o755);
  }

  async function script(which: string, ...args: string[]): Promise<string> {
    const text = await readFile(`${DEBIAN}${which}`, 'utf8');
    const own = text.replaceAll(/(?<![\w.])\/(etc|var|mnt|run|usr|proc)(?=\/)/g, `${house}/$1`);
    await put(which, own);
    const env = { PATH: `${at('bin')}:/usr/bin:/bin` };
    return (await run('sh', [at(which), ...args], { env })).stderr;
  }

  /** As dpkg unpacks it: beside the file of before, which keeps its other names. */
  async function unpack(version: string): Promise<void> {
    await script('preinst', 'upgrade', '0', version);
    await rm(at('usr/lib/mountkeeper/version'));
    await put('usr/lib/mountkeeper/version', version);
    await rm(at('usr/lib/mountkeeper/bin/node'));
    await put('usr/lib/mountkeeper/bin/node', version);
  }
  const configure = (): Promise<string> => script('postinst', 'configure', '0');
  async function install(version: string): Promise<string> {
    await unpack(version);
    return configure();
  }
  const now = async (): Promise<{
    runs: string;
    state: string;
    left: readonly string[];
  }> => ({
    runs: await read('runs'),
    state: await read('state'),
    left: [...(await readdir(at('usr/lib'))), ...(await readdir(at('run')))].filter(
      (name) => !['mountkeeper', 'systemd'].includes(name),
    ),
  });

  it('leaves nothing of the version before once the new one is up', async () => {
    assert.equal(await install('2'), '');
    assert.deepEqual(await now(), { runs: '2', state: 'active', left: [] });
  });

  it('takes back what does not come up, time after time, until one does', async () => {
    for (const version of ['2-broken', '3-broken']) {
      assert.match(await install(version), new RegExp(`version ${version} did not come up; the one before`));
      assert.deepEqual(await now(), {
        runs: '1',
        state: 'active',
        left: ['mountkeeper.former'],
      });
      assert.equal(await read('usr/lib/mountkeeper.former/instead-of'), `${version}\n`);
    }
    assert.equal(await install('4'), '');
    assert.deepEqual(await now(), { runs: '4', state: 'active', left: [] });
  });

  it('goes back to the version that ran when another one was unpacked in between', async () => {
    await unpack('2-broken');
    await install('3-broken');
    assert.equal(await read('runs'), '1');
  });

  it('goes back to what runs, and not to what ran before that', async () => {
    await put('load', 'masked');
    await install('2');
    assert.deepEqual((await now()).left, ['mountkeeper.former'], 'it runs from there');
    await put('load', 'loaded');
    await put('state', 'inactive');
    await run(at('bin/systemctl'), ['start', 'mountkeeper.service']);
    await install('3-broken');
    assert.deepEqual(await now(), {
      runs: '2',
      state: 'active',
      left: ['mountkeeper.former'],
    });
  });

  it('starts no daemon that somebody has stopped, and later the new version', async () => {
    for (const [state, status] of [
      ['inactive', '0'],
      ['failed', '75'],
    ] as const) {
      await put('state', state);
      await put('status', status);
      await put('asked', '');
      assert.equal(await install('2'), '');
      assert.doesNotMatch(await read('asked'), /^start/m);
      assert.deepEqual(await now(), { runs: '1', state, left: [] });
    }
    await install('3-broken');
    await run(at('bin/systemctl'), ['start', 'mountkeeper.service']).catch(() => undefined);
    assert.equal(await read('runs'), '3-broken');
  });

  it('starts no daemon that somebody has stopped and that drains still, and leaves it its files', async () => {
    await put('state', 'deactivating');
    await put('jobs', '7 mountkeeper.service stop running\n');
    await unpack('2');
    assert.deepEqual((await now()).left, ['mountkeeper.former', 'mountkeeper.stopped']);
    assert.equal(await configure(), '');
    assert.doesNotMatch(await read('asked'), /^(start|kill)/m);
    assert.deepEqual(await now(), {
      runs: '1',
      state: 'deactivating',
      left: ['mountkeeper.former'],
    });
    await put('state', 'inactive');
    await put('jobs', '');
    assert.equal(await install('3'), '');
    assert.deepEqual(await now(), { runs: '1', state: 'inactive', left: [] });
  });

  it('starts one that ends by itself, or to start again', async () => {
    for (const jobs of ['', '7 mountkeeper.service restart running\n']) {
      await put('state', 'deactivating');
      await put('jobs', jobs);
      await install(`2${jobs.length}`);
      assert.match(await read('asked'), /^start/m);
      assert.equal(await read('state'), 'active');
      await put('asked', '');
    }
  });

  it('starts one that has failed, or was removed before', async () => {
    await put('state', 'failed');
    await put('status', '1');
    await install('2');
    assert.deepEqual(await now(), { runs: '2', state: 'active', left: [] });
    await put('state', 'inactive');
    await script('preinst', 'install', '2', '2');
    await configure();
    assert.equal(await read('state'), 'active');
  });

  it('starts the new version after one was taken back and stopped', async () => {
    await install('2-broken');
    await put('state', 'inactive');
    await install('3');
    await run(at('bin/systemctl'), ['start', 'mountkeeper.service']);
    assert.deepEqual(await now(), { runs: '3', state: 'active', left: [] });
  });

  it('ends no daemon that it may not start again', async () => {
    await put('load', 'masked');
    assert.match(await install('2'), /masked, or policy-rc\.d/);
    await put('load', 'loaded');
    await stub('usr/sbin/policy-rc.d', 'exit 101');
    assert.match(await install('3'), /masked, or policy-rc\.d/);
    assert.doesNotMatch(await read('asked'), /^(kill|start)/m);
    assert.equal((await now()).state, 'active');
    await stub('usr/sbin/policy-rc.d', 'exit 104');
    assert.equal(await install('4'), '');
    assert.deepEqual(await now(), { runs: '4', state: 'active', left: [] });
  });

  it('lets systemd go on trying when the version before does not come up either', async () => {
    await put('usr/lib/mountkeeper/version', '1-broken');
    assert.match(await install('2-broken'), /did not come up; the mounts go on/);
    const asked = (await read('asked')).trim().split('\n');
    assert.deepEqual(
      asked.filter((one) => one.includes('daemon-reload') || one.startsWith('start')).slice(-3),
      ['--system daemon-reload', 'start --no-block mountkeeper.service', '--system daemon-reload'],
    );
    assert.deepEqual(await readdir(at('run/systemd/system')), []);
    assert.equal((await readdir(at('usr/lib/mountkeeper.former'))).includes('instead-of'), false);
  });

  it('that is broken off by a signal leaves a daemon that runs, the new one', async () => {
    for (const [signal, code] of [
      ['HUP', 129],
      ['INT', 130],
      ['TERM', 143],
    ] as const)
      for (const when of ['before', 'after']) {
        await unpack(`2-${signal}-${when}`);
        await put('signal', `${signal} ${when}\n`);
        await assert.rejects(configure, { code });
        assert.deepEqual((await now()).state, 'active');
        assert.equal(await read('runs'), `2-${signal}-${when}`);
        assert.deepEqual(await readdir(at('run/systemd/system')), [], 'restarts are on');
      }
    assert.equal(await install('3'), '');
    assert.deepEqual(await now(), { runs: '3', state: 'active', left: [] });
  });

  it('is no removal: one that ends early starts the daemon again, unless somebody has stopped it', async () => {
    for (const [state, after] of [
      ['active', 'active'],
      ['deactivating', 'active'],
      ['inactive', 'inactive'],
      ['failed', 'failed'],
    ] as const) {
      await put('state', state);
      await script('prerm', 'remove');
      if (state === 'active') await put('state', 'inactive');
      await script('postinst', 'abort-remove');
      assert.deepEqual(await now(), { runs: '1', state: after, left: [] }, state);
    }
    await put('state', 'inactive');
    await script('prerm', 'remove');
    await script('postrm', 'remove');
    assert.deepEqual((await now()).left, []);
  });

  it('starts the daemon when the upgrade before was killed while none ran', async () => {
    await unpack('2');
    await put('signal', 'KILL after\n');
    await assert.rejects(configure);
    assert.deepEqual([await read('runs'), await read('state')], ['1', 'inactive']);
    assert.equal(await install('3'), '');
    assert.deepEqual(await now(), { runs: '3', state: 'active', left: [] });
    assert.deepEqual(await readdir(at('run/systemd/system')), []);
  });

  it('that is broken off leaves nothing', async () => {
    await script('preinst', 'upgrade', '1', '2');
    await mkdir(at('usr/lib/mountkeeper.former.new'));
    await script('postrm', 'abort-upgrade', '1');
    assert.deepEqual((await now()).left, []);
  });

  it('that is broken off leaves the tree that the daemon runs from, with another unpacked beside it', async () => {
    await unpack('2');
    await script('preinst', 'upgrade', '2', '3');
    await script('postrm', 'abort-upgrade', '2');
    assert.equal(await read('usr/lib/mountkeeper.former/version'), '1');
    assert.equal(await read('runs'), '1');
  });
});
