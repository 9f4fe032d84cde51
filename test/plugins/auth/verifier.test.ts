import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createVerifier } from '../../../plugins/auth/verifier.ts';

describe('credentials that are given', () => {
  it('are right only with the name and the password divided where they are', async () => {
    const verifier = createVerifier('admin', 'pass word');
    assert.equal(await verifier.examine({ username: 'admin', password: 'pass word' }).verify(), true);
    const wrong = [
      ['adminp', 'ass word'],
      ['admi', 'npass word'],
      ['adminpass word', ''],
      ['', 'adminpass word'],
      ['admin\0', 'pass word'],
    ] as const;
    for (const [username, password] of wrong) {
      assert.equal(await verifier.examine({ username, password }).verify(), false, `${username}:${password}`);
    }
  });
});
