import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checksNoHostKey, hostKeyDoubts } from '../../../../plugins/mount/options/host-keys.ts';

describe('the host key of a NAS', () => {
  it('is checked by nobody where the connection says nothing of it', () => {
    assert.equal(checksNoHostKey({ type: 'sftp', options: { host: 'nas' } }), true);
    assert.equal(checksNoHostKey({ type: 'sftp', options: { known_hosts_file: '/k' } }), false);
    assert.equal(checksNoHostKey({ type: 'smb', options: {} }), false);
  });

  it('is for the command of the option ssh to check, beside which rclone heeds no other option', () => {
    assert.deepEqual(hostKeyDoubts({ type: 'sftp', options: { ssh: 'ssh ada@nas' } }), []);
    assert.equal(hostKeyDoubts({ type: 'sftp', options: { ssh: '' } }).length, 1);
    assert.deepEqual(hostKeyDoubts({ type: 'sftp', options: { ssh: { file: '/s' } } }), []);
  });
});
