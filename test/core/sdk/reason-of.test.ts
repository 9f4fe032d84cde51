import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { messageOf, sentence, stackOf } from '../../../core/platform/log/thrown.ts';
import { reasonOf } from '../../../core/sdk/reason-of.ts';
import { ODD_THROWS } from '../../support/plugins/odd-throws.ts';

describe('why something failed', () => {
  for (const [what, thrown] of Object.entries(ODD_THROWS))
    it(`is one short line of ${what}`, () => {
      const reason = reasonOf(thrown);
      assert.match(reason, /^\S[^\n\u001b]*$/u);
      assert.ok(reason.length <= 1_000, String(reason.length));
      for (const text of [messageOf(thrown), sentence(thrown), stackOf(thrown)])
        assert.ok(typeof text === 'string' && text.length <= 65_536);
    });

  it('is what an error and its causes say', () => {
    const cause = new Error('port 445 is taken');
    assert.equal(reasonOf(new Error('effect "port"', { cause })), 'effect "port": port 445 is taken');
    assert.equal(reasonOf(new Error('a\nb'), 300), 'a b');
    assert.equal(reasonOf('a text'), 'a text');
    assert.equal(reasonOf({ message: 'of another realm' }), 'of another realm');
  });

  it('says that there is none where nothing was said', () => {
    assert.equal(reasonOf(undefined), 'it threw undefined, which is no error');
    assert.equal(reasonOf(null), 'it threw null, which is no error');
    assert.equal(reasonOf({ code: 5 }), 'it threw { code: 5 }, which is no error');
    assert.equal(reasonOf(new TypeError('')), 'TypeError without a message');
    assert.equal(
      reasonOf(ODD_THROWS['a message that throws']),
      'it threw something that cannot be put into words',
    );
  });
});
