import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import {
  BrokenProtocol,
  FrameReader,
  MOST_MESSAGE_BYTES,
  frame,
  sendTo,
  sharedJson,
} from '../../../../core/plugins/runner/protocol.ts';

const answer = (value: unknown) => ({ is: 'answer', id: 1, value }) as const;

describe('messages between daemon and runner', () => {
  it('come out whole, however the bytes come in', () => {
    const sent = [answer('照片'), { is: 'ping' } as const, answer({ a: [1, null] })];
    const bytes = Buffer.concat(sent.map((one) => frame(one)));
    for (const size of [1, 3, 7, bytes.length]) {
      const reader = new FrameReader();
      const heard: unknown[] = [];
      for (let at = 0; at < bytes.length; at += size)
        heard.push(...reader.read(bytes.subarray(at, at + size)));
      assert.deepEqual(heard, sent, `${size} bytes at a time`);
    }
  });

  it('make the JSON of what all runners are told alike once, and are what they were without that', () => {
    let made = 0;
    const status = Object.freeze({
      version: 7,
      get record() {
        made += 1;
        return { shares: ['照片'], at: undefined };
      },
    });
    const plain = { version: 7, record: { shares: ['照片'] } };
    sharedJson(status);
    const call = { is: 'call', id: 3, kind: 'tap', index: 0, seat: 2 } as const;
    for (let runner = 0; runner < 5; runner += 1)
      for (const [sent, heard] of [
        [
          { is: 'world', world: { snapshot: status, notices: [], config: undefined } } as const,
          { is: 'world', world: { snapshot: plain, notices: [] } },
        ],
        [{ is: 'world', seat: 2, world: {} } as const, { is: 'world', seat: 2, world: {} }],
        [
          { ...call, args: [status, undefined, 12] },
          { ...call, args: [plain, null, 12] },
        ],
        [
          { ...call, args: [] },
          { ...call, args: [] },
        ],
      ] as const) {
        assert.deepEqual(new FrameReader().read(frame(sent)), [heard]);
        const pipe = new PassThrough();
        assert.equal(sendTo(pipe, sent), true);
        assert.deepEqual(new FrameReader().read(pipe.read() as Buffer), [heard]);
      }
    assert.equal(made, 1);
  });

  it('are refused before they are held when they are too long', () => {
    const header = Buffer.alloc(4);
    header.writeUInt32BE(MOST_MESSAGE_BYTES + 1);
    assert.throws(() => new FrameReader().read(header), BrokenProtocol);
    assert.throws(() => frame(answer('x'.repeat(MOST_MESSAGE_BYTES))), /is larger than/);
  });

  it('are refused when they are no JSON, or of no kind', () => {
    for (const text of ['{', 'null', '[]', '{"is":1}', '"is"']) {
      const header = Buffer.alloc(4);
      header.writeUInt32BE(text.length);
      assert.throws(
        () => new FrameReader().read(Buffer.concat([header, Buffer.from(text)])),
        BrokenProtocol,
        text,
      );
    }
  });

  it('are not sent to who does not read them', () => {
    const deaf = new PassThrough({ highWaterMark: 1 });
    const large = answer('x'.repeat(MOST_MESSAGE_BYTES - 100));
    let sent = 0;
    while (sent < 20 && sendTo(deaf, large)) sent += 1;
    assert.ok(sent > 0 && sent < 20, `${sent}`);
    deaf.destroy();
    assert.equal(sendTo(deaf, { is: 'ping' }), false);
  });
});
