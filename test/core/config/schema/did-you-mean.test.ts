import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { nearest, suggestion } from '../../../../core/config/schema/did-you-mean.ts';

describe('did you mean', () => {
  const keys = ['port', 'listen', 'hostnames', 'password', 'username'];

  it('finds what was mistyped', () => {
    const found = ['prot', 'Port', 'listn', 'host_names', 'passwrd', 'user'].map((word) =>
      nearest(word, keys),
    );
    assert.deepEqual(found, ['port', 'port', 'listen', 'hostnames', 'password', undefined]);
  });

  it('says nothing when nothing is near', () => {
    assert.equal(suggestion('bandwidth', keys), '');
    assert.equal(suggestion('', keys), '');
    assert.equal(suggestion('x', []), '');
  });

  it('takes no time for endless words', () => {
    assert.equal(nearest('x'.repeat(1_000_000), ['y'.repeat(1_000_000)]), undefined);
  });
});
