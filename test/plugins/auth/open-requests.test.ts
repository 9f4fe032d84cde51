import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, it } from 'node:test';
import type { Request } from '@hapi/hapi';
import { OpenRequests } from '../../../plugins/auth/open-requests.ts';

function request(method: string): { readonly it: Request; readonly leave: () => void } {
  const res = Object.assign(new EventEmitter(), { closed: false });
  const leave = (): void => {
    res.closed = true;
    res.emit('close');
  };
  return { it: { method, raw: { res } } as Partial<Request> as Request, leave };
}

describe('open requests', () => {
  it('are those that read, while they are being answered', () => {
    const open = new OpenRequests(() => true);
    const [reading, writing, late] = [request('get'), request('post'), request('get')];
    late.leave();
    for (const { it: one } of [reading, writing, late]) open.add(one, undefined);
    assert.equal(open.size, 1, 'one who left while his password was checked is not kept for good');
    reading.leave();
    assert.equal(open.size, 0);
  });
});
