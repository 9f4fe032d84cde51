/** Sentences of others on one line. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { oneLine } from '../../../core/sdk/one-line.ts';

describe('a sentence of somebody else', () => {
  it('has neither escape sequences nor what makes it look like another', () => {
    assert.equal(oneLine('\u001b[31mA\r\n\tred\u202e \u200bone\u2060\ufeff.\u2028'), 'A red one .');
  });

  it('keeps what joins and parts letters: emoji and Persian are written with it', () => {
    for (const text of ['👩‍👧 came home', 'می‌خواهم']) {
      assert.match(text, /[\u200c\u200d]/u);
      assert.equal(oneLine(text), text);
    }
  });

  it('ends with an ellipsis where it is too long', () => {
    assert.equal(oneLine('x'.repeat(400)), `${'x'.repeat(299)}…`);
    assert.equal(oneLine('one two three', 8), 'one two…');
  });
});
