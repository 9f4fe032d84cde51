import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compoundCall, opaque, operation, readCompoundAnswer, uint } from '../../../plugins/nfs/xdr.ts';

function answer(xid: number, status: number, accepted = 0): Buffer {
  const body = Buffer.concat([
    uint(xid),
    uint(1),
    uint(0),
    uint(0),
    uint(0),
    uint(accepted),
    uint(status),
    opaque('look'),
    uint(1),
    uint(24),
    uint(status),
  ]);
  return Buffer.concat([uint((0x8000_0000 | body.length) >>> 0), body]);
}

describe('questions to an NFS server', () => {
  it('pad names to four bytes and count bytes, not characters', () => {
    assert.deepEqual([...opaque('é')], [0, 0, 0, 2, 0xc3, 0xa9, 0, 0]);
    assert.deepEqual([...opaque('abcd')], [0, 0, 0, 4, 97, 98, 99, 100]);
    assert.deepEqual([...opaque('')], [0, 0, 0, 0]);
  });

  it('are one record with its length in front', () => {
    const bytes = compoundCall(5, [
      operation.putRoot(),
      operation.lookup('照片 Photos'),
      operation.getType(),
    ]);
    assert.equal(bytes.readUInt32BE(), 0x8000_0000 + bytes.length - 4);
    assert.equal(bytes.readUInt32BE(4), 5);
    assert.equal(bytes.length % 4, 0);
    assert.ok(bytes.includes(Buffer.from('照片 Photos')));
  });

  it('are answered by a status, once the answer is whole', () => {
    const bytes = answer(9, 2);
    assert.equal(readCompoundAnswer(bytes.subarray(0, 20), 9), undefined);
    assert.deepEqual([readCompoundAnswer(bytes, 9)?.status, readCompoundAnswer(bytes, 9)?.count], [2, 1]);
  });

  it('are not answered by anything else', () => {
    assert.throws(
      () => readCompoundAnswer(Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'), 9),
      /no NFS server/,
    );
    assert.throws(() => readCompoundAnswer(answer(8, 0), 9), /no NFS server/);
    assert.throws(() => readCompoundAnswer(answer(9, 0, 2), 9), /does not take/);
  });
});
