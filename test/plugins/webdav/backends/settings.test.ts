import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Config, Processes, Secret, Secrets } from 'mountkeeper';
import { backendArguments } from '../../../../plugins/webdav/backends/separate-backend.ts';
import { schema } from '../../../../plugins/webdav/config.ts';
import { checks } from '../../../../plugins/webdav/doctor.ts';
import { webdavPaths, pathsProblem } from '../../../../plugins/webdav/exporter/paths.ts';
import { loginNotices, proxyUsers, resolveUsers } from '../../../../plugins/webdav/exporter/users.ts';
import { isOpenToAll } from '../../../../plugins/webdav/exporter/open-to-all.ts';
import { unlessRoot } from '../../../runner/skips.ts';

describe('settings of WebDAV', () => {
  it('are off and on loopback until told otherwise', () => {
    assert.deepEqual(schema.validate({}).value, {
      enabled: false,
      port: 8091,
      listen: '127.0.0.1',
      users: [],
    });
  });

  it('know no user name with a colon, and none twice', () => {
    const user = (name: string) => ({ name, password: 'p' });
    assert.match(schema.validate({ users: [user('a:b')] }).error?.message ?? '', /without a colon/);
    assert.ok(schema.validate({ users: [user('a'), user('a')] }).error);
    assert.equal(schema.validate({ users: [user('a'), user('A'), user('王')] }).error, undefined);
    for (const listen of ['eth0', '10.0.0.0/8'])
      assert.match(
        schema.validate({ listen }).error?.message ?? '',
        /"?listen"? must be an address$/,
        listen,
      );
  });

  it('leave a user out whose password is not known, and never let everybody in for it', () => {
    const secrets = {
      resolve: (secret: Secret) =>
        typeof secret === 'string' ? secret : assert.fail('the variable DAV is not set'),
    };
    const { users, problems } = resolveUsers(
      [
        { name: 'a', password: 'x' },
        { name: 'b', password: { env: 'DAV' } },
        { name: 'c', password: '' },
      ],
      secrets,
    );
    assert.deepEqual(users, [{ name: 'a', password: 'x' }]);
    assert.deepEqual(
      problems.map((one) => /user "(.)" cannot log in/.exec(one)?.[1]),
      ['b', 'c'],
    );
  });

  it('have a notice for everybody who is let in, and for everybody who is not', () => {
    const own = { name: 'own', users: ['a'] };
    const config = { shares: [own, { name: 'open' }] } as unknown as Config;
    const said = (users: readonly string[], ...problems: readonly string[]): readonly string[] =>
      loginNotices({
        settings: { users: users.map((name) => ({ name, password: 'p' })) },
        config,
        shares: ['own', 'open'],
        problems,
        systemProblems: [],
      }).map(({ level, message }) => `${level}: ${message}`);
    assert.deepEqual(said([]), [
      'warning: everybody who reaches its port is let in over WebDAV: add [[webdav.users]]',
      "warning: the share 'own' names its users and WebDAV has none: nobody finds it there",
    ]);
    assert.deepEqual(said(['a', 'b'], 'b cannot log in'), ['warning: b cannot log in']);
    assert.deepEqual(said(['a'], 'a cannot log in'), [
      'warning: nobody can log in over WebDAV: no user has a password that is known',
      'warning: a cannot log in',
    ]);
  });

  it('leave nobody in without a password where users of the machine come in', () => {
    const settings = { users: [], system_group: 'people' };
    const own = { name: 'own', password: 'p' };
    assert.deepEqual([isOpenToAll(settings), isOpenToAll({ users: [] })], [false, true]);
    assert.deepEqual(proxyUsers(settings, {} as Secrets, own).users, [own]);
    assert.deepEqual(proxyUsers({ users: [] }, {} as Secrets, own).users, []);
    const config = { shares: [{ name: 'own', users: ['a'] }] } as unknown as Config;
    const facts = { settings, config, shares: ['own'], problems: [], systemProblems: ['no group'] };
    assert.deepEqual(loginNotices(facts), [{ level: 'warning', message: 'no group' }]);
  });

  it('say when the state folder is too deep for the sockets', () => {
    assert.equal(pathsProblem(webdavPaths('/var/lib/mountkeeper')), undefined);
    assert.match(
      pathsProblem(webdavPaths(`/${'x'.repeat(90)}`)) ?? '',
      /supervisor\.state_dir that is \d+ bytes shorter/,
    );
    const { socket, freshSocket } = webdavPaths('/s');
    assert.notEqual(socket('Team'), socket('team'));
    assert.equal(freshSocket('team').length, socket('team').length);
    assert.notEqual(freshSocket('team'), freshSocket('team'));
  });

  it('have a line of doctor that says whom the server runs as', { skip: unlessRoot }, async () => {
    const webdav = { enabled: true, listen: '127.0.0.1', port: 443, users: [{ name: 'a', password: 'p' }] };
    const said = async (code: (args: readonly string[]) => number): Promise<string> => {
      const run = (spec: { args: readonly string[] }) => Promise.resolve({ code: code(spec.args) });
      const config = {
        supervisor: { state_dir: '/var/lib/mountkeeper' },
        web: { trusted_proxies: [] },
        webdav,
      } as unknown as Config;
      const found = await checks(config, { run } as unknown as Processes);
      const { result, detail } = found.find(({ title }) => title === 'WebDAV process') ?? {};
      return `${result}: ${detail}`;
    };
    const isAsRoot = (args: readonly string[]): boolean => !args.join(' ').includes('--reuid');
    assert.equal(await said(() => 0), 'ok: runs as mountkeeper');
    assert.equal(
      await said((args) => (isAsRoot(args) ? 0 : 1)),
      'warning: runs as root without capabilities: the user mountkeeper may not read its program',
    );
    assert.equal(
      await said(() => 1),
      'warning: runs as root: setpriv cannot take any of its rights away here',
    );
    const asked: string[] = [];
    await said((args) => asked.push(args.join(' ')));
    assert.match(asked[0] ?? '', /--bounding-set=-all,\+net_bind_service /, 'a port below 1024 takes it');
  });

  it('say who of this machine may log in, and what is missing for it', async () => {
    const webdav = { enabled: true, listen: '127.0.0.1', port: 8_091, users: [], system_group: 'people' };
    const config = { supervisor: {}, web: { trusted_proxies: [] }, webdav } as unknown as Config;
    const answers: Record<string, string> = {
      group: 'people:x:2000:nora\n',
      passwd: 'nora:x:1000:1000::/:/bin/sh\n',
    };
    const run = ({ command, args: [database = ''] }: { command: string; args: readonly string[] }) =>
      command === 'pwauth'
        ? Promise.reject(new Error("command 'pwauth' was not found"))
        : Promise.resolve({ code: 0, stdout: answers[database] ?? '' });
    const said = async (): Promise<readonly string[]> =>
      (await checks(config, { run } as unknown as Processes))
        .filter(({ title }) => / users|PAM/.test(title))
        .map(({ title, result, detail }) => `${title}: ${result}: ${detail}`);
    assert.deepEqual(await said(), [
      'WebDAV users: ok: 0',
      'WebDAV users of this machine: ok: 1',
      "WebDAV and PAM: error: command 'pwauth' was not found",
    ]);
    answers['group'] = '';
    assert.match((await said())[1] ?? '', /error: this machine has no group "people"/);
  });

  it('put no password on the command line of a server beside a mount, and no port that others could take', () => {
    const args = backendArguments('照片', '/mnt/照片', '/state/webdav/s/abc');
    assert.ok(args.includes('--addr=unix:///state/webdav/s/abc') && args.includes('--baseurl=/照片'));
    assert.doesNotMatch(args.join(' '), /user|pass|127\.0\.0\.1/);
  });
});
