/** What a stranger says to people is told apart from what the daemon says. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { noticesUnderName, underName } from '../../../../../core/plugins/runner/carried/under-name.ts';

describe('a sentence of a plugin in a process of its own', () => {
  it('is under its name, on one line', () => {
    assert.equal(underName('odd', 'The sign-in\r\nhas\u2028expired.\u0007'), 'odd: The sign-in has expired.');
    assert.equal(underName('odd', 'odd: dry'), 'odd: dry');
    assert.equal(underName('odd', '\nodd: dry'), 'odd: dry');
  });

  it('is one of 20 notices of 300 characters, each under its name', () => {
    const notice = { level: 'error', message: 'The sign-in has expired.' };
    assert.deepEqual(noticesUnderName('odd', [notice, 7, { level: 'info' }]), [
      { level: 'error', message: 'odd: The sign-in has expired.' },
      7,
      { level: 'info' },
    ]);
    const many = noticesUnderName('odd', Array(200).fill({ level: 'info', message: 'x'.repeat(4_000) }));
    const lengths = (many as { readonly message: string }[]).map(({ message }) => message.length);
    assert.deepEqual(lengths, Array(20).fill(305));
    assert.equal(noticesUnderName('odd', 'no list'), 'no list');
  });
});
