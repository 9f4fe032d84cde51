/** What plugins give is taken over as the contract says it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { check, notice } from '../../../../core/plugins/instance/given-values.ts';

describe('a sentence that a plugin gives', () => {
  it('is cleaned before it is cut: no part of an escape sequence stays', () => {
    const message = `${'\u001b[31m'.repeat(1_000)}The\nend.`;
    assert.deepEqual(notice({ level: 'info', message }), { level: 'info', message: 'The end.' });
    const { title, detail, advice } = check({
      title: message,
      result: 'ok',
      detail: message,
      advice: message,
    });
    assert.deepEqual([title, detail, advice], ['The end.', 'The end.', 'The end.']);
  });

  it('is no longer than it may be', () => {
    const { message } = notice({ level: 'info', message: 'x'.repeat(1_000_000) });
    assert.match(message, /^x{4095}…$/);
  });
});
