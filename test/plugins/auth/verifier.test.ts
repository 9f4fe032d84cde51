import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createVerifier } from '../../../plugins/auth/verifier.ts';

describe('credentials that are given', () => {
  it('are right only with the name and the password divided where they are', async () => {
    const verifier = createVerifier('admin', 'pass word');
    assert.equal(verifier.examine({ username: 'admin', password: 'pass word' }).verdict, 'right');
    for (const [username, password] of [['adminp', 'ass word'], ['admi', 'npass word'], ['adminpass word', ''], ['', 'adminpass word'], ['admin\0', 'pass word']] as const) {
      const { verdict, verify } = verifier.examine({ username, password });
      assert.notEqual(verdict, 'right', `${username}:${password}`);
      assert.equal(await verify(), false, `${username}:${password}`);
    }
  });
});
