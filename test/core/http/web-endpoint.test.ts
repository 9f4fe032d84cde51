import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import pino from 'pino';
import type { Notice } from '../../../core/contract/notifications.ts';
import type { Address } from '../../../core/sdk/http/address.ts';
import { createManualClock } from '../../../core/testing/manual-clock.ts';
import { WebEndpoint } from '../../../core/http/web-endpoint.ts';

function stage() {
  const clock = createManualClock();
  const taken = new Set<number>();
  const asked: number[] = [];
  let notice: Notice | undefined;
  let address: Address | undefined;
  const http = {
    get address() {
      return address;
    },
    listen: async (wanted: Address) => {
      asked.push(wanted.port);
      if (taken.has(wanted.port)) throw new Error(`port ${wanted.port} is taken`);
      address = wanted;
    },
    listenForCommands: async (stateDir: string) => {
      if (stateDir === '/full') throw new Error('no space left');
    },
  };
  const status = {
    setStanding: (_key: string, next: Notice | undefined) => {
      notice = next;
    },
  };
  const entrance = new WebEndpoint({ clock, log: pino({ level: 'silent' }), http, status });
  return {
    clock,
    taken,
    asked,
    entrance,
    notice: () => notice,
    port: () => address?.port,
    to: (port: number) => entrance.listen({ host: '127.0.0.1', port }),
  };
}

describe('the web entrance', () => {
  it('says that it is not where it should be, and moves once it can', async () => {
    const { clock, taken, notice, port, to } = stage();
    await to(1);
    assert.deepEqual([port(), notice()], [1, undefined]);
    taken.add(2);
    await to(2);
    assert.equal(port(), 1);
    assert.match(notice()?.message ?? '', /still on 127\.0\.0\.1 port 1: port 2 is taken/);
    taken.clear();
    await clock.advance(5_000);
    assert.deepEqual([port(), notice()], [2, undefined]);
  });

  it('forgets an address that is no longer wanted', async () => {
    const { clock, taken, asked, notice, to } = stage();
    taken.add(1);
    await to(1);
    assert.match(notice()?.message ?? '', /and nowhere else/);
    await to(2);
    assert.equal(notice(), undefined);
    await clock.advance(60_000);
    assert.deepEqual(asked, [1, 2]);
  });

  it('goes on without its command socket, and says so', async () => {
    const { entrance, notice } = stage();
    await entrance.listenForCommands('/fine');
    assert.equal(notice(), undefined);
    await entrance.listenForCommands('/full');
    assert.match(notice()?.message ?? '', /command socket in \/full cannot be opened: no space left/);
  });

  it('tries no more once it is closed', async () => {
    const { clock, taken, asked, entrance, to } = stage();
    taken.add(1);
    await to(1);
    entrance.close();
    await clock.advance(60_000);
    assert.deepEqual(asked, [1]);
    await to(1);
    await clock.advance(60_000);
    assert.deepEqual(asked, [1, 1]);
  });
});
