import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  callFailure,
  inPlainWords,
  mountFailure,
  remoteFailure,
  withoutDetour,
} from '../../../../plugins/mount/rclone/error-messages.ts';

describe('what rclone says', () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    [
      '2026/11/21 05:51:33 CRITICAL: Failed to create file system for "nas:": NewFs: ' +
        "couldn't connect SSH: ssh: handshake failed: ssh: unable to authenticate, " +
        'attempted methods [none password]',
      /refused the user name or password/,
    ],
    [
      "Failed to lsf: couldn't connect SSH: dial tcp: lookup nowhere on 1.1.1.1:53: no such host",
      /host name of the remote cannot be found/,
    ],
    ["couldn't connect SSH: dial tcp 127.0.0.1:1: connect: connection refused", /refuses connections/],
    ['2026/11/21 05:51:33 ERROR : error listing: directory not found', /not there on the remote/],
    ['dial tcp 10.0.0.1:22: i/o timeout', /does not answer in time/],
    [
      'Fatal error: failed to mount FUSE fs: fusermount: exec: "fusermount3": executable file not found in $PATH',
      /install the package fuse3/,
    ],
    ['Fatal error: directory is not empty: /mnt/x', /mount point is not empty/],
    ['mkdir: permission denied', /does not let this user into the path/],
  ];
  for (const [said, expected] of cases) {
    it(`becomes plain: ${said.slice(-40)}`, () => assert.match(inPlainWords([said], 'otherwise'), expected));
  }

  it("is judged by its last line that is understood, with rclone's own words behind", () => {
    assert.equal(
      inPlainWords(['dial: connection refused', 'gibberish', ''], 'otherwise'),
      'the remote refuses connections; is its service running, and is the port right? (dial: connection refused)',
    );
  });

  it('never gives the way in which rclone is kept from a NAS that is away as the reason', () => {
    const line =
      "2026/11/21 05:51:33 ERROR : NewFs: couldn't connect SSH: dial tcp 240.0.0.1:0->127.0.0.1:19779: " +
      'bind: cannot assign requested address';
    assert.equal(inPlainWords([line], 'otherwise'), 'the NAS is offline');
    assert.deepEqual(
      [mountFailure([line], 'otherwise'), remoteFailure([line, ''], 'otherwise')].map((error) => [
        error.message,
        (error as { remote?: string }).remote,
      ]),
      [
        ['the NAS is offline', 'silent'],
        ['the NAS is offline', 'silent'],
      ],
    );
    assert.equal(callFailure(new Error(line), new AbortController().signal).message, 'the NAS is offline');
    assert.equal(withoutDetour(line), 'the NAS is offline');
    assert.equal(withoutDetour('no such host'), 'no such host');
  });

  it('shows whether the remote has answered, is silent, or nothing about it', () => {
    const shown = (line: string) => remoteFailure([line], 'otherwise').remote;
    assert.deepEqual(
      ['ssh: unable to authenticate', 'directory not found', 'x509: unknown authority'].map(shown),
      ['answers', 'answers', 'answers'],
    );
    assert.deepEqual(
      ['dial tcp: connection refused', 'i/o timeout', 'no route to host', 'no such host', 'EOF'].map(shown),
      ['silent', 'silent', 'silent', 'silent', 'silent'],
    );
    const proxied = ['HTTP error 502 Bad Gateway', '503 Service Unavailable', '504 Gateway Time-out'];
    assert.deepEqual(proxied.map(shown), ['silent', 'silent', 'silent'], 'a proxy before a NAS that is away');
    assert.deepEqual(['no space left on device', 'strange'].map(shown), [undefined, undefined]);
    assert.equal(
      remoteFailure(['i/o timeout'], 'otherwise').message,
      inPlainWords(['i/o timeout'], 'otherwise'),
    );
  });

  it('is about the remote where nothing is mounted by the call', () => {
    const refused = 'sftp: "open /srv/new: operation not permitted" (SSH_FX_FAILURE)';
    const failure = remoteFailure([refused], 'the remote refuses it');
    assert.equal(failure.message, `the remote does not let this user into the path (${refused})`);
    assert.equal(failure.remote, 'answers');
    assert.equal(
      remoteFailure(['directory not empty'], 'the remote refuses it').message,
      'the remote refuses it (directory not empty)',
    );
    assert.match(
      mountFailure(['fusermount3: mount failed: Operation not permitted'], 'x').message,
      /^this user may not mount here/,
    );
  });

  it('is passed on when it is not understood', () => {
    assert.equal(
      inPlainWords(['2026/11/21 05:51:33 ERROR : strange'], 'the mount failed'),
      'the mount failed (strange)',
    );
    assert.equal(inPlainWords([], 'the mount failed'), 'the mount failed');
  });
});
