/**
 * What a document that comes over HTTP may not bring in, on the real daemon: the attacks themselves, and
 * that nothing of them came about.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { after, afterEach, before, describe, it } from 'node:test';
import { applied, runs } from '../../support/config/applied-config.ts';
import type { ConnectionText } from '../../support/config/config-text.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { mountsBelow } from '../../support/platform/mounted-file-systems.ts';
import { NAS_PASSWORD, Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';

/** Longer than a share needs to be probed, which is when its connection is used for the first time. */
const PROBED_MS = 2_500;
const SENTENCE = new RegExp(
  '^Validation error: .*' +
    '(it may stand in the configuration file, written by somebody with a shell|' +
    'it cannot be switched on over HTTP, edit the configuration)',
  's',
);

describe('a document over HTTP', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;

  const trap = (): string => scratch.path('trap-was-run');
  const program = (): string => scratch.path('trap.sh');
  const secret = (): string => scratch.path('root-only');
  const bait = (): string => scratch.path('bait');
  const wants = (connection: ConnectionText, share: Record<string, string> = {}): string =>
    daemon.text({
      connections: [...daemon.traits.connections, connection],
      shares: [...daemon.traits.shares, { name: 'evil', connection: connection.name, ...share }],
    });
  const nasWith = (options: Record<string, string>): string => {
    const [first, ...others] = daemon.traits.connections;
    return daemon.text({
      connections: [{ name: 'nas', type: 'sftp', options: { ...first?.options, ...options } }, ...others],
    });
  };

  before(async () => {
    scratch = await createScratch('untrusted');
    nas = await Nas.create(scratch, { files: { 'x.bin': 1000 } });
    await mkdir(bait());
    await writeFile(secret(), `${NAS_PASSWORD}\n`, { mode: 0o600 });
    await writeFile(program(), `#!/bin/sh\nid -u >> ${trap()}\n`);
    await chmod(program(), 0o755);
    await writeFile(scratch.path('aws'), `[default]\ncredential_process = ${program()}\n`);
    const { options } = nas.connection('kept');
    const connections = [
      nas.connection('nas'),
      { name: 'kept', type: 'sftp', options: { ...options, pass: { file: secret() } } },
      { name: 'disk', type: 'local' },
    ];
    const shares = [
      { name: 'work', connection: 'nas' },
      { name: 'kept', connection: 'kept' },
      { name: 'disk', connection: 'disk', remote_path: nas.dir, read_only: true },
    ];
    daemon = await Daemon.create(scratch, { connections, shares, rclone: currentRclone() ?? 'rclone' });
    await daemon.start();
    await daemon.healthy(['work', 'kept', 'disk']);
  });
  after(() => scratch.close());

  /** Also where an attack was let through: the next one begins from the same document. */
  afterEach(async () => {
    assert.ok(daemon.alive);
    await rm(trap(), { force: true });
    const was = await readFile(daemon.configFile, 'utf8');
    await daemon.writeConfig(daemon.text());
    await runs(daemon, daemon.text());
    assert.equal(was, daemon.text(), 'the file was changed');
  });

  async function isRefused(text: string): Promise<void> {
    const { status, body } = await daemon.submit(text);
    // Where it was taken, it gets the time to do its work: the trap tells more than a number.
    if (status === 200) await sleep(PROBED_MS);
    assert.deepEqual([existsSync(trap()), await readdir(bait()), status], [false, [], 400], body.message);
    assert.match(body.message, SENTENCE);
    assert.deepEqual((await mountsBelow(bait())).length, 0);
  }

  const attacks: readonly (readonly [string, () => string])[] = [
    [
      'S3 credentials that a program gives',
      () =>
        wants(
          {
            name: 's3',
            type: 's3',
            options: {
              provider: 'AWS',
              env_auth: true,
              region: 'us-east-1',
              endpoint: 'http://127.0.0.1:1',
              shared_credentials_file: scratch.path('aws'),
            },
          },
          { remote_path: 'b' },
        ),
    ],
    [
      'a program in the way to a new NAS',
      () => wants({ name: 'sub', type: 'sftp', options: { host: 'x', ssh: program() } }),
    ],
    ['a program in the way to the NAS', () => nasWith({ ssh: program() })],
    [
      'a token that a program gives',
      () =>
        wants({
          name: 'dav',
          type: 'webdav',
          options: { url: 'http://127.0.0.1:1', bearer_token_command: program() },
        }),
    ],
    [
      'a program by way of another remote',
      () => wants({ name: 'over', type: 'alias', options: { remote: `:sftp,host=x,ssh=${program()}:` } }),
    ],
    ['the disk of this machine', () => wants({ name: 'root', type: 'local' }, { remote_path: '/' })],
    [
      'the disk of this machine under another name',
      () => wants({ name: 'root', type: 'alias', options: { remote: '/' } }),
    ],
    [
      'the disk of this machine, encrypted',
      () => wants({ name: 'root', type: 'crypt', options: { remote: bait(), password: 'x' } }),
    ],
    [
      'the disk of this machine among others',
      () => wants({ name: 'root', type: 'union', options: { upstreams: `${bait()} /` } }),
    ],
    [
      'another folder of the disk that the file shows',
      () =>
        daemon.text({ shares: [{ name: 'disk', connection: 'disk', remote_path: '/etc', read_only: true }] }),
    ],
    [
      'the disk that the file shows, to be written to',
      () => daemon.text({ shares: [{ name: 'disk', connection: 'disk', remote_path: nas.dir }] }),
    ],
    [
      'a share of its own on the disk that the file shows',
      () =>
        daemon.text({
          shares: [...daemon.traits.shares, { name: 'evil', connection: 'disk', remote_path: '/' }],
        }),
    ],
    [
      'a share led to the disk that the file shows',
      () => daemon.text({ shares: [{ name: 'work', connection: 'disk', remote_path: '/' }] }),
    ],
    ['a key of this machine', () => nasWith({ key_file: '/root/.ssh/id_ed25519' })],
    [
      "a further section of rclone's configuration",
      () => nasWith({ user: `x\`\n[global]\ntype = sftp\nssh = ${program()}\n` }),
    ],
    ["a further line of rclone's configuration", () => nasWith({ host: `x\r\nssh = ${program()}` })],
    [
      'a secret of this machine that is sent to a new place',
      () =>
        wants({
          name: 'leak',
          type: 'webdav',
          options: { url: 'http://127.0.0.1:1', bearer_token: { file: secret() } },
        }),
    ],
    [
      'a secret of the file that is sent to a new place',
      () =>
        daemon.text({
          connections: daemon.traits.connections.map((one) =>
            one.name === 'kept' ? { ...one, options: { ...one.options, host: 'localhost' } } : one,
          ),
        }),
    ],
    ['a secret of the environment', () => daemon.text({ sections: { web: { password: { env: 'PATH' } } } })],
    [
      'a mount over another folder',
      () => daemon.text({ shares: [{ name: 'work', connection: 'nas', mount_point: `${bait()}/m` }] }),
    ],
    [
      'a mount that climbs out of its root',
      () =>
        daemon.text({
          shares: [{ name: 'work', connection: 'nas', mount_point: `${daemon.mountRoot}/../bait/m` }],
        }),
    ],
    ['another root of the mounts', () => daemon.text({ sections: { mount: { root: bait() } } })],
    ['another rclone', () => daemon.text({ sections: { mount: { rclone: program() } } })],
    ['another cache', () => daemon.text({ sections: { cache: { dir: `${bait()}/cache` } } })],
    [
      'another state folder',
      () => daemon.text({ sections: { supervisor: { state_dir: `${bait()}/state` } } }),
    ],
    ['another log', () => daemon.text({ sections: { log: { file: `${bait()}/log` } } })],
    ['code', () => daemon.text({ sections: { plugins: { dirs: [bait()] } } })],
    [
      'a plugin that may come later',
      () => daemon.text({ sections: { 'plugins.stranger': { enabled: true } } }),
    ],
    ['programs on a share', () => daemon.text({ shares: [{ name: 'work', connection: 'nas', exec: true }] })],
  ];
  for (const [what, text] of attacks) it(`does not bring in ${what}`, () => isRefused(text()));

  it('does not reveal by its answers which files exist', async () => {
    const answers = await Promise.all(
      [secret(), scratch.path('no-such-file')].map((file) =>
        daemon.submit(daemon.text({ sections: { web: { password: { file } } } })),
      ),
    );
    const [there, missing] = answers.map(({ body }) =>
      body.message.replaceAll(/\S*(root-only|no-such-file)\S*/g, 'FILE'),
    );
    assert.equal(there, missing);
  });

  it('may bring in the rest: other shares, another address of the NAS, and what the file has', async () => {
    const other = {
      ...nas.connection('other'),
      options: { ...nas.connection('other').options, shell_type: 'none' },
    };
    const text = daemon.text({
      connections: [...daemon.traits.connections, other],
      shares: [
        ...daemon.traits.shares,
        { name: 'more', connection: 'other', mount_point: `${daemon.mountRoot}/deep/er` },
      ],
    });
    await applied(daemon, text);
    await applied(daemon, daemon.text());
    const preset = await daemon.request('POST', '/api/preset/office');
    assert.match(preset.text, /class="ok"/);
    await until(
      'it is applied',
      async () => (await daemon.get('/api/config')).text.includes('"buffer_size":"128M"'),
      { timeoutMs: 20_000 },
    );
    await applied(daemon, daemon.text());
  });
});
