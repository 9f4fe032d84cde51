/** What smbd has not taken is tried again at each look, also while its tools hang. */
import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, it } from 'node:test';
import { ApplyAgain } from '../../../plugins/smb/apply-again.ts';

function setUp() {
  const logged: string[] = [];
  /** What each try waits for. */
  const tries: { readonly resolve: () => void; readonly reject: (error: Error) => void }[] = [];
  const again = new ApplyAgain(() => new Promise((resolve, reject) => void tries.push({ resolve, reject })), {
    error: ({ err }: { err: Error }) => void logged.push(err.message),
  } as never);
  return { again, logged, tries };
}

describe('what smbd has not taken', () => {
  it('is tried once at a time by looks', async () => {
    const { again, tries } = setUp();
    for (let look = 0; look < 3; look += 1) again.begin();
    assert.equal(tries.length, 1);
    tries[0]?.reject(new Error('smbcontrol hangs'));
    await turn();
    again.begin();
    assert.equal(tries.length, 2);
    // A server that has just started does not take over what was begun before.
    void again.run();
    assert.equal(tries.length, 3);
  });

  it('is told in the log once for each reason in a row', async () => {
    const { again, logged, tries } = setUp();
    for (const reason of ['hangs', 'hangs', 'other', undefined, 'other']) {
      const done = again.run();
      if (reason === undefined) tries.at(-1)?.resolve();
      else tries.at(-1)?.reject(new Error(reason));
      await done;
    }
    assert.deepEqual(logged, ['hangs', 'other', 'other']);
  });
});
