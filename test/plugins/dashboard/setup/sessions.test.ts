import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createManualClock } from '../../../../core/testing/manual-clock.ts';
import { Sessions } from '../../../../plugins/dashboard/setup/sessions.ts';

const NAS = { kind: 'sftp', address: 'nas.local', user: 'ada', password: 'secret' } as const;

describe('the answers of the guide', () => {
  it('go on for the same NAS and user, with the password from before where none is typed', () => {
    const sessions = new Sessions(createManualClock());
    const { id, folders } = sessions.begin(NAS);
    folders.add('Photos');
    const again = sessions.again(id, { ...NAS, password: '' });
    assert.equal(again.id, id);
    assert.deepEqual([again.nas.password, ...again.folders], ['secret', 'Photos']);
    assert.equal(sessions.again(id, { ...NAS, password: 'another' }).nas.password, 'another');
  });

  it('begin anew for another one, which is never given that password', () => {
    const sessions = new Sessions(createManualClock());
    const { id } = sessions.begin(NAS);
    for (const other of [{ address: 'other.local' }, { user: 'eve' }, { kind: 'webdav' as const }]) {
      const begun = sessions.again(id, { ...NAS, ...other, password: '' });
      assert.notEqual(begun.id, id);
      assert.equal(begun.nas.password, '');
    }
    assert.equal(sessions.again('unknown', { ...NAS, password: '' }).nas.password, '');
  });
});
