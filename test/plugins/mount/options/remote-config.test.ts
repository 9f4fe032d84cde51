import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { remoteConfigText, withFolders } from '../../../../plugins/mount/options/remote-config.ts';

describe('the configuration that rclone reads', () => {
  const textOf = (options: Record<string, string>): Promise<string> =>
    remoteConfigText(
      { name: 'nas', type: 'sftp', options },
      {
        command: 'rclone',
        processes: {} as never,
        secrets: { resolve: String },
        providers: [{ types: ['sftp'], options: [] }],
      },
    );

  it('has one line for each option, whatever ends of lines are in a value', async () => {
    for (const end of ['\n', '\r\n', '\r', '\n\n', '`\n']) {
      for (const name of ['user', 'key_pem']) {
        const lines = (await textOf({ [name]: `x${end}[evil]${end}ssh = y` })).split(/[\r\n]/);
        assert.equal(lines.length, 4, `${name} ${JSON.stringify(end)}`);
        assert.ok(lines[2]?.startsWith(`${name} = \`x`), lines[2]);
      }
    }
  });

  it('keeps the lines of a key', async () => {
    assert.match(await textOf({ key_pem: 'a\r\nb\nc\n' }), /^key_pem = `a\\nb\\nc`$/m);
  });
});

describe('a connection below a write layer', () => {
  const told = (type: string, options: Record<string, string>): unknown =>
    withFolders({ name: 'nas', type, options }).options;

  it('stores folders as objects where there are none else, unless its options say otherwise', () => {
    assert.deepEqual(told('s3', { region: 'x' }), { region: 'x', directory_markers: 'true' });
    assert.deepEqual(told('s3', { directory_markers: 'false' }), { directory_markers: 'false' });
    assert.deepEqual(told('sftp', { host: 'x' }), { host: 'x' });
  });
});
