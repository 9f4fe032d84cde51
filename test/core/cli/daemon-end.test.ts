/** What `mountkeeper run` says at its end, and the status that it ends with. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { exitCode } from '../../../core/cli/daemon-command.ts';

describe('the end of the daemon', () => {
  const end = { reason: 'stopped', left: [], isKnown: true } as const;
  const left = [{ share: 'photos', count: 1, bytes: 10, paths: ['a.jpg'] }];

  it('is 0 with nothing left, and 75 with files left or when nobody knows', (t) => {
    const said: string[] = [];
    t.mock.method(process.stderr, 'write', (text: string) => said.push(text) > 0);
    const ends = [
      end,
      { ...end, left },
      { ...end, isKnown: false },
      { ...end, isKnown: false, crashed: true },
    ];
    const codes = ends.map((one) => [exitCode(one as typeof end), said.splice(0).join('')] as const);
    t.mock.restoreAll();
    assert.deepEqual(
      codes.map(([code]) => code),
      [0, 75, 75, 1],
    );
    assert.equal(codes[0]?.[1], '');
    assert.match(
      codes[1]?.[1] ?? '',
      /^1 files .* of share 'photos' are not on the NAS yet;.*\n {2}a\.jpg\n$/,
    );
    assert.match(codes[2]?.[1] ?? '', /^the cache could not be read in full: .* may wait in it/);
  });
});
