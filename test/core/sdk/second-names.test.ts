import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { conflictPath, secondPath } from '../../../core/sdk/second-names.ts';

describe('names of second versions', () => {
  it('stand before the extension, with a number from the second attempt on', () => {
    assert.equal(secondPath('a/b.txt', 'recovered', 0), 'a/b (recovered).txt');
    assert.equal(secondPath('a.b/c', 'recovered', 1), 'a.b/c (recovered 2)');
    assert.equal(secondPath('.hidden', 'x', 0), '.hidden (x)');
    const now = new Date(2026, 10, 22, 14, 5).getTime();
    assert.equal(
      conflictPath('b.txt', { now, host: 'desk' }, 2),
      'b (conflict 2026-11-22 14-05, desk 3).txt',
    );
  });

  it('are as long as file systems take, in whole characters, with their extension', () => {
    for (const name of [
      `${'ä'.repeat(125)}.txt`,
      'x'.repeat(255),
      `.${'😀'.repeat(63)}`,
      `a.${'y'.repeat(250)}`,
    ]) {
      const second = secondPath(`f/${name}`, 'recovered 2026-11-22 14-05', 11);
      assert.ok(Buffer.byteLength(second.slice(2)) <= 255, second);
      assert.match(second, /^f\/.* \(recovered 2026-11-22 14-05 12\)(\.txt)?$/u);
      assert.ok(!second.includes('\uFFFD'));
    }
  });
});
