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

  it('names of what is no error its class and what is wrong, never what else it holds', () => {
    class Refusal {
      readonly status = 401;
      readonly token = 'abc-secret';
      readonly headers = { authorization: 'Bearer abc-secret' };
    }
    const inside = Object.assign(() => 1, { token: 'abc-secret' });
    assert.equal(
      reasonOf({ status: 401, code: 'EAUTH', message: '', token: 'abc-secret' }),
      "it threw { code: 'EAUTH', status: 401 }, which is no error",
    );
    assert.equal(reasonOf(new Refusal()), 'it threw Refusal { status: 401 }, which is no error');
    assert.equal(reasonOf(['abc-secret']), 'it threw Array {}, which is no error');
    assert.equal(reasonOf(inside), 'it threw Function {}, which is no error');
    const login = { user: 'me', password: 'abc-secret', message: { text: 'abc-secret' } };
    assert.equal(reasonOf(new Error('no bed', { cause: login })), 'no bed: it threw {}, which is no error');
    const named = Object.assign(new Error(''), { name: Object.assign(() => 1, { token: 'abc-secret' }) });
    assert.equal(reasonOf(named), 'Error without a message');
    const long = reasonOf({ code: `a\n${'x'.repeat(10_000)}` }, 10_000);
    assert.match(long, /^it threw \{ code: 'a\\nx{98}'\.\.\. \d+ more characters \}, which is no error$/);
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
