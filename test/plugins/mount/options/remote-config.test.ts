import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { remoteConfigText, withFolders } from '../../../../plugins/mount/options/remote-config.ts';
import { currentRclone } from '../../../support/nas/rclone-binaries.ts';

describe('the configuration that rclone reads', () => {
  const textOf = (options: Record<string, string>): string =>
    remoteConfigText(
      { name: 'nas', type: 'sftp', options },
      {
        secrets: { resolve: String },
        providers: [{ types: ['sftp'], options: [{ name: 'pass', isPassword: true, isSensitive: false }] }],
      },
    );

  it('has one line for each option, whatever ends of lines are in a value', () => {
    for (const end of ['\n', '\r\n', '\r', '\n\n', '`\n']) {
      for (const name of ['user', 'key_pem']) {
        const lines = textOf({ [name]: `x${end}[evil]${end}ssh = y` }).split(/[\r\n]/);
        assert.equal(lines.length, 4, `${name} ${JSON.stringify(end)}`);
        assert.ok(lines[2]?.startsWith(`${name} = \`x`), lines[2]);
      }
    }
  });

  it('has passwords as rclone reads them, of which the first line counts, and never in clear', () => {
    const passwords = ['pa ss"\'$(x)`', ' 密码\twith a tab ', 'first\nsecond', 'a\r\nb'];
    for (const clear of passwords) {
      const obscured = /^pass = `(.*)`$/m.exec(textOf({ pass: clear }))?.[1] ?? '';
      assert.ok(!textOf({ pass: 'secret' }).includes('secret'));
      const [line] = clear.split(/\r?\n/);
      assert.equal(
        execFileSync(currentRclone(), ['reveal', '--', obscured], { encoding: 'utf8' }),
        `${line}\n`,
      );
    }
    assert.match(textOf({ pass: '' }), /^pass = ``$/m);
    assert.notEqual(
      textOf({ pass: 'x' }),
      textOf({ pass: 'x' }),
      'the same password is not seen to be the same',
    );
  });

  it('keeps the lines of a key', () => {
    assert.match(textOf({ key_pem: 'a\r\nb\nc\n' }), /^key_pem = `a\\nb\\nc`$/m);
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
