/** What `mountkeeper check` says of machines that are named and reach nothing, or are all there are. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Config } from '../../../core/contract/config.ts';
import { clientWarnings } from '../../../plugins/nfs/client-warnings.ts';

interface Given {
  readonly nfs?: object;
  readonly share?: object;
}

describe('machines that the configuration lets in over NFS', () => {
  const said = ({ nfs = {}, share = {} }: Given): readonly string[] =>
    clientWarnings({
      nfs: { enabled: true, port: 2049, listen: '0.0.0.0', allowed_clients: ['192.168.1.0/24'], ...nfs },
      shares: [{ name: 'team', protocols: ['smb', 'nfs'], ...share }],
    } as unknown as Config).map(({ message, isWarning }) => {
      assert.equal(isWarning, true);
      return message;
    });

  it('are named where the share is not shown', () => {
    const share = { clients: ['10.0.0.1'] };
    assert.deepEqual(
      [said({ share: { ...share, protocols: ['smb'] } }), said({ share, nfs: { enabled: false } })],
      [
        ['machines are named for share "team", but its protocols leave "nfs" out'],
        ['machines are named for share "team", but nfs.enabled is false'],
      ],
    );
  });

  it('are named where the server listens for this machine alone', () => {
    const listen = '127.0.0.1';
    assert.deepEqual(said({ nfs: { listen } }), [
      'nfs.listen is 127.0.0.1, which this machine alone reaches; 192.168.1.0/24 is let in and cannot come',
    ]);
    assert.deepEqual(said({ nfs: { listen, allowed_clients: ['127.0.0.1', '::1'] } }), []);
  });

  it('are named where they are every machine', () => {
    assert.deepEqual(
      said({ nfs: { allowed_clients: ['0.0.0.0/0'] }, share: { read_only_clients: ['::/0'] } }),
      [
        'nfs.allowed_clients[0] is 0.0.0.0/0: every machine that reaches the port, and NFS asks for no password',
        'shares[0].read_only_clients[0] is ::/0: every machine that reaches the port, and NFS asks for no password',
      ],
    );
  });

  it('are named where they may write by one list and read alone by the other', () => {
    const share = {
      clients: ['10.0.0.5', '10.0.0.0/16', '10.1.0.1', 'fd00::1'],
      read_only_clients: ['10.0.0.0/24', 'fd00::/64'],
    };
    assert.deepEqual(said({ share }), [
      'shares[0].clients[0] is 10.0.0.5, which may read alone, since read_only_clients has 10.0.0.0/24',
      'shares[0].clients[3] is fd00::1, which may read alone, since read_only_clients has fd00::/64',
    ]);
  });

  it('are none of it where they come in as they are named', () => {
    assert.deepEqual(said({}), []);
    assert.deepEqual(said({ share: { clients: ['10.0.0.5'], read_only_clients: ['10.0.0.6'] } }), []);
    assert.deepEqual(said({ nfs: { enabled: false, allowed_clients: [], listen: '127.0.0.1' } }), []);
  });
});
