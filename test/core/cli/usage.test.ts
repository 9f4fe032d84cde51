import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { overview, page } from '../../../core/cli/usage.js';
import { displayWidth, wrap } from '../../../core/cli/wrap.js';

const WARMUP = {
  name: 'warmup',
  usage: 'SHARE [PATH] [--newer-than AGE] [--dry-run] [--cancel] [--no-wait]',
  summary:
    'Fetch what the rules of a share name, or one folder of it, into the cache, and show how far it is.',
};

describe('help', () => {
  it('fits into the width, with every command on a line of its own', () => {
    const lines = overview(
      [WARMUP, { name: 'status', usage: '[--json]', summary: 'Show the state of every share.' }],
      80,
    ).split('\n');
    assert.deepEqual(
      lines.filter((line) => displayWidth(line) > 80),
      [],
    );
    const names = lines.flatMap((line) => /^ {2}(\S+) {2}/.exec(line)?.[1] ?? []);
    assert.deepEqual(names, ['check', 'doctor', 'plugin', 'run', 'status', 'support', 'warmup']);
  });

  it('keeps an option and its value together', () => {
    const text = page(WARMUP, 56);
    assert.deepEqual(
      text.split('\n').filter((line) => displayWidth(line) > 56),
      [],
    );
    assert.match(text, /\[--newer-than AGE\]/);
    assert.match(text, /^Usage: mountkeeper warmup SHARE \[PATH\]\n +\[--newer-than AGE\] /);
    assert.match(text, /MOUNTKEEPER_CONFIG/);
  });

  it('breaks at blanks only', () => {
    assert.deepEqual(wrap('/a/path/that/is/long and more', 10), ['/a/path/that/is/long', 'and more']);
    assert.deepEqual(wrap('照片 照片 照片', 9), ['照片 照片', '照片']);
    assert.deepEqual(wrap('', 9), ['']);
  });
});
