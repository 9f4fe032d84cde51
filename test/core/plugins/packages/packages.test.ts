/** Who may have packages installed from the page, what is asked of the command line, and what comes of it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { createClock } from '../../../../core/platform/clock.ts';
import { commandEnvironment } from '../../../../core/plugins/packages/command-process.ts';
import type { CommandEnd, CommandRun } from '../../../../core/plugins/packages/command-process.ts';
import { createPackages } from '../../../../core/plugins/packages/packages.ts';
import type { OwnedPackages } from '../../../../core/plugins/packages/packages.ts';

const ADMIN = { name: 'ada', kind: 'user', role: 'admin' };
const INSTALLED = {
  name: 'garden',
  version: '1.0.0',
  package: '@friend/garden',
  integrity: 'sha512-x',
  provenance: '',
  permissions: ['network', 'processes', 'everything'],
  enabled: false,
  scripts_not_run: true,
  unfit: 'two\nlines',
};
const QUESTION = 'version 2.0.0 may also start processes, and the plugin is on';

interface Room {
  readonly packages: OwnedPackages;
  readonly runs: CommandRun[];
  /** Ends the oldest command that is under way. */
  end(end: Partial<CommandEnd>): Promise<void>;
  isAllowed: boolean;
  isGuarded: boolean;
  password: string;
  principal: typeof ADMIN | undefined;
}

function room(): Room {
  const runs: CommandRun[] = [];
  const ends: ((end: CommandEnd) => void)[] = [];
  const now: Omit<Room, 'packages' | 'runs' | 'end'> & Partial<Room> = {
    isAllowed: true,
    isGuarded: true,
    password: 'word',
    principal: ADMIN,
  };
  const packages = createPackages({
    configFile: '/etc/mountkeeper.toml',
    config: () =>
      ({ plugins: { dirs: [], install_from_page: now.isAllowed }, web: { password: now.password } }) as never,
    isGuarded: () => now.isGuarded,
    requester: () => ({ id: '1', from: {} as never, ...(now.principal && { principal: now.principal }) }),
    installed: () => ['garden'],
    clock: createClock(),
    log: pino({ level: 'silent' }),
    run: (run) => {
      runs.push(run);
      return new Promise((resolve, reject) => {
        ends.push(resolve);
        run.signal.addEventListener('abort', () => reject(run.signal.reason as Error));
      });
    },
  });
  const end = async (one: Partial<CommandEnd>): Promise<void> => {
    ends.shift()?.({ code: 0, stdout: '', stderr: '', ...one });
    await new Promise((resolve) => setImmediate(resolve));
  };
  return Object.assign(now, { packages, runs, end }) as Room;
}

const install = (what: string) => ({ verb: 'install', what }) as const;

describe('packages of plugins on the page', () => {
  const tryAll = ({ packages: { service } }: Room): readonly unknown[] => [
    service.begin(install('garden')),
    service.begin({ verb: 'update', what: 'garden' }),
    service.begin({ verb: 'remove', what: 'garden' }),
    service.agree('garden', QUESTION),
    service.look('roses'),
  ];
  const all = (refusal: string): readonly string[] => Array<string>(5).fill(refusal);

  it('are refused while the file does not allow them', () => {
    const one = room();
    one.isAllowed = false;
    assert.equal(one.packages.service.refusal, 'off');
    assert.deepEqual(tryAll(one), all('off'));
    assert.deepEqual(one.runs, []);
  });

  it('are refused where nobody is asked for a password', () => {
    const unset = room();
    unset.password = '';
    assert.deepEqual(tryAll(unset), all('nobody-asked'));
    const unguarded = room();
    unguarded.isGuarded = false;
    assert.deepEqual(tryAll(unguarded), all('nobody-asked'));
    assert.deepEqual([...unset.runs, ...unguarded.runs], []);
  });

  it('are refused to all but administrators of the page', () => {
    for (const principal of [
      { ...ADMIN, role: 'operator' },
      { ...ADMIN, role: 'viewer' },
      { ...ADMIN, kind: 'token' },
      undefined,
    ]) {
      const one = room();
      one.principal = principal;
      assert.equal(one.packages.service.refusal, undefined);
      assert.deepEqual(tryAll(one), all('not-admin'));
      assert.deepEqual(one.runs, []);
    }
  });

  it('are named by the registry alone, and plugins as they were installed', () => {
    const { packages, runs } = room();
    for (const what of ['./garden', 'garden.tgz', 'a@npm:b', '--yes', ''])
      assert.equal(packages.service.begin(install(what)), 'name', what);
    for (const verb of ['update', 'remove', 'enable'] as const)
      for (const what of ['pond', '@friend/garden', '--force', ''])
        assert.equal(packages.service.begin({ verb: verb as 'update', what }), 'name', `${verb} ${what}`);
    assert.equal(packages.service.begin({ verb: 'enable' as 'update', what: 'garden' }), 'name');
    assert.equal(packages.service.look('--config=/x'), 'name');
    assert.deepEqual(runs, []);
  });

  it('are installed one at a time by the command line, and what came of it is kept', async () => {
    const { packages, runs, end } = room();
    const { service } = packages;
    assert.equal(service.begin(install('@friend/garden@^1')), undefined);
    assert.deepEqual(runs[0]?.args, ['install', '@friend/garden@^1']);
    assert.equal(runs[0].configFile, '/etc/mountkeeper.toml');
    runs[0].said('npm fetches @friend/garden@^1 …\u001B[2J');
    assert.deepEqual(
      [service.change?.state, service.change?.said],
      ['running', 'npm fetches @friend/garden@^1 …'],
    );
    assert.equal(service.begin({ verb: 'remove', what: 'garden' }), 'busy');
    assert.equal(service.look('roses'), undefined, 'a search is no change');
    assert.equal(service.look('roses'), 'busy');
    await end({
      stdout: JSON.stringify(INSTALLED),
      stderr: 'npm fetches @friend/garden@^1 …\nnot in order\n',
    });
    assert.equal(service.change?.state, 'done');
    assert.deepEqual(service.change.result, {
      name: 'garden',
      version: '1.0.0',
      former: undefined,
      package: '@friend/garden',
      integrity: 'sha512-x',
      provenance: '',
      permissions: ['network', 'processes'],
      hasScripts: true,
      warnings: ['two lines', 'not in order'],
    });
    await end({
      stdout: JSON.stringify([{ name: 'roses', version: '1.0.0', description: 'Red.' }, { name: 5 }]),
    });
    const { state, words, found } = service.search ?? {};
    assert.deepEqual(
      [state, words, found],
      ['done', 'roses', [{ name: 'roses', version: '1.0.0', description: 'Red.' }]],
    );
    assert.equal(service.begin({ verb: 'remove', what: 'garden' }), undefined);
    assert.deepEqual(runs[2]?.args, ['remove', 'garden']);
  });

  it("fail in the command line's own words", async () => {
    const { packages, end } = room();
    const { service } = packages;
    service.begin(install('chalk'));
    await end({
      code: 1,
      stderr: 'npm fetches chalk …\nmountkeeper: chalk@1.0.0 is not installed: it is no plugin\n',
    });
    const { state, problem, question } = service.change ?? {};
    assert.deepEqual(
      [state, problem, question],
      ['failed', 'chalk@1.0.0 is not installed: it is no plugin', undefined],
    );
    service.begin(install('chalk'));
    await end({ stdout: 'no answer' });
    assert.deepEqual(
      [service.change?.state, service.change?.problem],
      ['failed', 'the command ended with code 0'],
    );
    assert.equal(service.agree('garden', QUESTION), 'question');
  });

  it('that may do more wait for a yes to just that', async () => {
    const { packages, runs, end } = room();
    const { service } = packages;
    const stderr = `garden stays at 1.0.0: ${QUESTION}; nobody is asked here, --yes agrees to it\n`;
    service.begin({ verb: 'update', what: 'garden' });
    await end({ code: 1, stderr });
    assert.equal(service.change?.question, QUESTION);
    assert.equal(service.agree('garden', `${QUESTION} `), 'question');
    assert.equal(service.agree('pond', QUESTION), 'question', 'the yes was for another one');
    assert.equal(service.agree('garden', QUESTION), undefined);
    assert.deepEqual(runs[1]?.args, ['update', 'garden', `--yes=${QUESTION}`]);
    assert.equal(service.agree('garden', QUESTION), 'busy');
    await end({ code: 1, stderr: stderr.replace('2.0.0', '2.0.1') });
    const other = QUESTION.replace('2.0.0', '2.0.1');
    assert.equal(service.agree('garden', QUESTION), 'question', 'another version asks anew');
    assert.equal(service.agree('garden', other), undefined);
    assert.deepEqual(runs[2]?.args, ['update', 'garden', `--yes=${QUESTION}`, `--yes=${other}`]);
    await end({
      stdout: JSON.stringify({ name: 'garden', former: '1.0.0', version: '2.0.1', permissions: [] }),
    });
    assert.equal(service.agree('garden', other), 'question');
    service.begin({ verb: 'update', what: 'garden' });
    assert.deepEqual(runs[3]?.args, ['update', 'garden'], 'what was agreed to is over');
  });

  it('are ended with the daemon, and nothing begins any more', async () => {
    const { packages, runs } = room();
    const { service } = packages;
    service.begin(install('garden'));
    await packages.close();
    assert.equal(runs[0]?.signal.aborted, true);
    assert.deepEqual(
      [service.change?.state, service.change?.problem],
      ['failed', 'the daemon was stopped meanwhile; `mountkeeper plugin list` tells what is installed'],
    );
    assert.equal(service.begin(install('garden')), 'busy');
  });

  it("get an environment without what is the daemon's own", () => {
    const env = commandEnvironment({
      PATH: '/usr/bin',
      npm_config_registry: 'http://127.0.0.1/',
      'npm_config_//registry.example/:_authToken': 'secret',
      npm_config__auth: 'secret',
      NO_PROXY: '.lan',
      MOUNTKEEPER_PASSWORD: 'secret',
      CREDENTIALS_DIRECTORY: '/run/credentials',
      NODE_OPTIONS: '--require /x',
    });
    assert.doesNotMatch(JSON.stringify(env), /secret|credentials|require/);
    assert.deepEqual([env['npm_config_registry'], env['NO_PROXY']], ['http://127.0.0.1/', '.lan']);
  });
});
