import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ShortCommand } from 'mountkeeper';
import { hostKeyAdvice, shownHostKeys } from '../../../plugins/setup/host-keys.ts';

/** Of a key that was made for this; `ssh-keygen -l` says the same of it. */
const KEY = 'AAAAC3NzaC1lZDI1NTE5AAAAIGVoXRYa2DYOqSyOv5Lc3cW2yCUiRa10AsHQVMyHDGtl';
const FINGERPRINT = 'SHA256:macGElgjWBUXaqu7VtNttg5PEX0kUyIjXx+Ogj97x/Q';

describe('the host keys that a NAS shows', () => {
  const shown = async (
    stdout: string | Error,
    options: Record<string, string | number> = { host: 'nas' },
  ) => {
    const asked: ShortCommand[] = [];
    const run = async (command: ShortCommand) => {
      asked.push(command);
      if (stdout instanceof Error) throw stdout;
      return { code: 0, signal: null, stdout, stderr: '# nas:22 SSH-2.0-x' };
    };
    const signal = new AbortController().signal;
    return { keys: await shownHostKeys({ options }, { run, signal }), args: asked[0]?.args };
  };

  it('are told as ssh tells them', async () => {
    const { keys, args } = await shown(`# nas SSH-2.0\nnas ssh-ed25519 ${KEY}\n`);
    assert.deepEqual(keys, [`${FINGERPRINT} (ed25519)`]);
    assert.deepEqual(args, ['-T', '5', '-p', '22', '--', 'nas']);
    assert.match(
      hostKeyAdvice(keys)[0] ?? '',
      /host keys now: SHA256:\S{43} \(ed25519\); compare.*; if they differ, change the password, which has been sent/,
    );
    assert.deepEqual(hostKeyAdvice([]), []);
    const { keys: both, args: at } = await shown(
      `[-x]:2222 ecdsa-sha2-nistp256 ${KEY}\n[-x]:2222 ssh-rsa ${KEY}AAAA\n`,
      { host: '-x', port: 2222 },
    );
    assert.equal(both.length, 2);
    const { keys: ofList, args: none } = await shown(`nas ssh-ed25519 ${KEY}\n`, { host: 'nas,other' });
    assert.deepEqual([ofList, none], [[], undefined], 'a host is no list');
    assert.deepEqual(at?.slice(2), ['-p', '2222', '--', '-x'], 'a host is no option');
  });

  it('are none where nothing tells them, or what is told is no key', async () => {
    for (const said of [
      '',
      'nas ssh-ed25519',
      `nas ssh-ed25519 ${KEY}\u001b[31m`,
      `nas x-ed25519 ${KEY}`,
      `nas ssh-\n${KEY}`,
    ])
      assert.deepEqual((await shown(said)).keys, [], said);
    assert.deepEqual((await shown(new Error('ssh-keyscan: not found'))).keys, []);
  });
});
