import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import pino from 'pino';
import type { Notice } from '../../../core/contract/notifications.ts';
import type { Address } from '../../../core/sdk/http/address.ts';
import { createManualClock } from '../../../core/testing/manual-clock.ts';
import type { KeyPair } from '../../../core/contract/http.ts';
import { WebEndpoint } from '../../../core/http/web-endpoint.ts';
import type { WebPlace } from '../../../core/http/web-endpoint.ts';

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
    closePlain: async () => assert.fail('no TLS is asked for'),
    listenForCommands: async (stateDir: string) => {
      if (stateDir === '/full') throw new Error('no space left');
    },
  };
  const status = {
    setStanding: (_key: string, next: Notice | undefined) => {
      notice = next;
    },
  };
  const entrance = new WebEndpoint({
    clock,
    log: pino({ level: 'silent' }),
    http,
    status,
    certificates: { keep: async () => assert.fail('no certificate is asked for') },
  });
  return {
    clock,
    taken,
    asked,
    entrance,
    notice: () => notice,
    port: () => address?.port,
    to: (port: number) =>
      entrance.listen({
        listen: '127.0.0.1',
        port,
        hostnames: [],
        trusted_proxies: [],
        plain_http: false,
      }),
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
    await entrance.close();
    await clock.advance(60_000);
    assert.deepEqual(asked, [1]);
    await to(1);
    await clock.advance(60_000);
    assert.deepEqual(asked, [1]);
  });
});

describe('the web entrance with TLS', () => {
  function secured() {
    const clock = createManualClock();
    const notices = new Map<string, Notice | undefined>();
    const opened: string[] = [];
    const open = new Set<string>();
    let address: Address | undefined;
    let change = (): void => undefined;
    const state = {
      pair: undefined as KeyPair | undefined,
      problem: undefined as string | undefined,
      taken: 0,
    };
    let speaks: 'nothing' | 'plain' | 'tls' = 'nothing';
    const entrance = new WebEndpoint({
      clock,
      log: pino({ level: 'silent' }),
      http: {
        get address() {
          return address;
        },
        listen: async (wanted, certificate) => {
          if (wanted.port === state.taken) throw new Error(`port ${wanted.port} is taken`);
          address = wanted;
          speaks = certificate ? 'tls' : 'plain';
          opened.push(certificate?.fingerprint ?? 'plain');
        },
        closePlain: async () => {
          if (speaks === 'plain') [address, speaks] = [undefined, 'nothing'];
        },
        listenForCommands: async () => undefined,
      },
      status: { setStanding: (key, notice) => void notices.set(key, notice) },
      certificates: {
        keep: async ({ certificate = '' }, { onChange }) => {
          open.add(certificate);
          change = onChange;
          return {
            get pair() {
              return state.pair;
            },
            get problem() {
              return state.problem;
            },
            notices: [],
            close: async () => void open.delete(certificate),
          };
        },
      },
    });
    const plain: WebPlace = {
      listen: '127.0.0.1',
      port: 1,
      hostnames: [],
      trusted_proxies: [],
      plain_http: false,
    };
    const tls = (certificate: string): WebPlace => ({
      ...plain,
      tls: { certificate, key: '/k', self_made: false, hsts: false },
    });
    const told = (key = 'web-address'): string => notices.get(key)?.message ?? '';
    const spoken = (): string => speaks;
    return { clock, entrance, opened, open, plain, state, tls, told, spoken, changed: () => change() };
  }
  const pair = (fingerprint: string): KeyPair => ({ cert: '', key: '', fingerprint, endsAt: Infinity });

  it('never speaks plain HTTP instead, and comes up once there is a certificate', async () => {
    const { clock, entrance, opened, state, tls, told } = secured();
    state.problem = 'there is no such file';
    await entrance.listen(tls('/c'));
    assert.deepEqual(opened, []);
    assert.match(told(), /and nowhere else: there is no such file; it is tried again/);
    state.pair = pair('one');
    await clock.advance(5_000);
    assert.deepEqual([opened, told()], [['one'], '']);
  });

  it('ends plain HTTP when TLS is switched on and there is no certificate that can be used', async () => {
    const { clock, entrance, plain, state, tls, told, spoken } = secured();
    await entrance.listen({ ...plain, listen: '0.0.0.0' });
    assert.notEqual(told('web-plain-http'), '');
    state.problem = 'half of one';
    await entrance.listen({ ...tls('/c'), listen: '0.0.0.0' });
    assert.deepEqual([spoken(), told('web-plain-http')], ['nothing', '']);
    assert.match(told(), /and nowhere else: half of one/);
    state.pair = pair('one');
    await clock.advance(5_000);
    assert.deepEqual([spoken(), told()], ['tls', '']);
  });

  it('ends plain HTTP when TLS and another port are wanted, and the port is taken; TLS goes on', async () => {
    const { entrance, plain, state, tls, told, spoken } = secured();
    state.pair = pair('one');
    state.taken = 2;
    await entrance.listen(plain);
    await entrance.listen({ ...tls('/c'), port: 2 });
    assert.equal(spoken(), 'nothing');
    assert.match(told(), /and nowhere else: port 2 is taken/);
    await entrance.listen(tls('/c'));
    await entrance.listen({ ...tls('/c'), port: 2 });
    assert.equal(spoken(), 'tls');
    assert.match(told(), /still on 127\.0\.0\.1 port 1: port 2 is taken/);
  });

  it('takes a new certificate, and forgets the one that is not wanted any more', async () => {
    const { entrance, opened, open, plain, state, tls, changed } = secured();
    state.pair = pair('one');
    await entrance.listen(tls('/c'));
    state.pair = pair('two');
    changed();
    await entrance.listen(tls('/c'));
    assert.deepEqual([opened.at(-1), [...open]], ['two', ['/c']]);
    await entrance.listen(tls('/other'));
    assert.deepEqual([...open], ['/other']);
    await entrance.listen(plain);
    assert.deepEqual([opened.at(-1), [...open]], ['plain', []]);
    await entrance.listen(tls('/c'));
    await entrance.close();
    assert.deepEqual([...open], []);
  });

  it('warns of plain HTTP to other machines, unless a proxy is in front', async () => {
    const { entrance, plain, state, tls, told } = secured();
    state.pair = pair('one');
    const everywhere = { listen: '0.0.0.0' };
    await entrance.listen({ ...plain, ...everywhere });
    assert.match(told('web-plain-http'), /in clear\. Set web\.tls; or put a proxy with TLS in front/);
    for (const place of [
      plain,
      { ...tls('/c'), ...everywhere },
      { ...plain, ...everywhere, trusted_proxies: ['192.0.2.1'] },
    ]) {
      await entrance.listen(place);
      assert.equal(told('web-plain-http'), '');
    }
  });
});
