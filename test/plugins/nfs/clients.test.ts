import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sessionsOf } from '../../../plugins/nfs/clients.ts';

describe('clients of NFS', () => {
  it('are one for each machine, with the bytes of all its connections where all are known', () => {
    const connection = (address: string, bytes: number | null) => ({
      address,
      port: 900,
      bytesToClient: bytes,
      bytesFromClient: bytes,
    });
    const found = sessionsOf([
      connection('192.0.2.1', 5),
      connection('192.0.2.2', null),
      connection('192.0.2.1', 7),
      connection('192.0.2.2', 1),
    ]);
    const unknown = { user: null, shares: null, since: null, lastAt: null };
    assert.deepEqual(found, [
      { id: '192.0.2.1', address: '192.0.2.1', ...unknown, bytesToClient: 12, bytesFromClient: 12 },
      { id: '192.0.2.2', address: '192.0.2.2', ...unknown, bytesToClient: null, bytesFromClient: null },
    ]);
  });
});
