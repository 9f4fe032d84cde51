/** Where smbd is reached, which it settles at its start alone. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import { resolveListen } from '../../../plugins/smb/addresses.ts';
import { noteOf, Reach, Restart } from '../../../plugins/smb/reach.ts';
import { smbPaths } from '../../../plugins/smb/paths.ts';
import { specFor } from '../../../plugins/smb/smbd.ts';

function setUp(...listen: readonly string[]) {
  const card: string[] = ['192.0.2.5'];
  const answering = new Set(['127.0.0.1', '192.0.2.5']);
  const asked: string[] = [];
  const reach = new Reach({
    listen,
    port: 445,
    present: () => ({ lan0: card.map((address) => ({ address, internal: false })) }),
    ask: async ({ host }) => {
      asked.push(host);
      if (!answering.has(host)) throw new Error(`nobody at ${host}`);
      return 0x0302;
    },
  });
  const ask = async (...started: readonly string[]) => {
    await reach.ask({ notes: noteOf(started) }, new AbortController().signal);
    return [asked.splice(0), reach.answering];
  };
  const startedWith = (...addresses: readonly string[]) => ({ notes: noteOf(addresses) });
  return { card, answering, reach, ask, startedWith };
}

describe('the addresses of an smbd that runs', () => {
  it('are asked where it was started with them and they are there, and one answer is enough', async () => {
    const { card, answering, reach, ask } = setUp('lan0', '127.0.0.1');
    assert.deepEqual(await ask('192.0.2.5', '127.0.0.1'), [
      ['192.0.2.5', '127.0.0.1'],
      ['192.0.2.5', '127.0.0.1'],
    ]);
    card.push('192.0.2.9');
    assert.deepEqual(await ask('192.0.2.5', '192.0.2.7', '127.0.0.1'), [
      ['192.0.2.5', '127.0.0.1'],
      ['192.0.2.5', '127.0.0.1'],
    ]);
    answering.delete('192.0.2.5');
    assert.deepEqual(await ask('192.0.2.5', '127.0.0.1'), [['192.0.2.5', '127.0.0.1'], ['127.0.0.1']]);
    assert.deepEqual(reach.problems(undefined), [
      'SMB does not answer at 192.0.2.5, where smbd should listen',
    ]);
    answering.clear();
    await assert.rejects(ask('192.0.2.5', '127.0.0.1'), /nobody at 192\.0\.2\.5/);
  });

  it('are asked all the same while none is there: a card without a link has none', async () => {
    const { card, reach, ask, startedWith } = setUp('lan0');
    card.length = 0;
    assert.deepEqual(await ask('192.0.2.5'), [['192.0.2.5'], ['192.0.2.5']]);
    assert.equal(reach.isCutOff(startedWith('192.0.2.5')), true);
    assert.deepEqual(reach.problems(undefined), [
      'SMB does not listen on lan0: this machine has no such address or network interface now',
    ]);
  });

  it('are fewer than are wanted where some have come since', async () => {
    const { card, reach, startedWith } = setUp('lan0', '192.0.2.7');
    assert.deepEqual(reach.come(startedWith('192.0.2.5')), []);
    card.push('192.0.2.7', '192.0.2.9', 'fe80::9');
    const server = startedWith('192.0.2.5');
    assert.deepEqual(reach.come(server), ['192.0.2.7', '192.0.2.9']);
    assert.equal(reach.isCutOff(server), false);
    assert.match(reach.problems(server).join(), /not listen on 192\.0\.2\.9 yet: smbd restarts for it once/);
    // A former version did not note them.
    assert.deepEqual(reach.come({ notes: {} }), []);
  });

  it('have it restarted once nobody is connected, for the next plan alone', async () => {
    const { card, reach, startedWith } = setUp('lan0');
    const clock = createManualClock();
    const restart = new Restart(reach, clock);
    let isFree = false;
    const look = () => restart.look(startedWith('192.0.2.5'), async () => isFree);
    assert.deepEqual([await look(), restart.take()], [false, false]);
    card.push('192.0.2.9');
    assert.deepEqual([await look(), restart.take()], [false, false], 'somebody is connected');
    isFree = true;
    assert.equal(await look(), false, 'it is asked again later');
    await clock.advance(10_000);
    assert.deepEqual([await look(), restart.take(), restart.take()], [true, true, false]);
    await clock.advance(10_000);
    assert.equal(await look(), true);
    card.pop();
    assert.deepEqual(
      [await look(), restart.take()],
      [false, false],
      'it has gone before a plan could be made',
    );
  });

  it('are those of its start for as long as it runs, also where a former version started it', () => {
    const samba = { smbd: '/usr/sbin/smbd', nssWrapper: '/lib/wrapper.so', hasFruit: true, stamp: '1' };
    const paths = smbPaths('/state');
    const settings = { samba, paths, port: 445, listen: ['127.0.0.1', '192.0.2.7'] };
    const listening = { interfaces: ['127.0.0.1'], addresses: ['127.0.0.1'], missing: ['192.0.2.7'] };
    const all = { interfaces: settings.listen, addresses: settings.listen, missing: [] };
    const { fingerprint, notes = {} } = specFor(settings, listening);
    assert.equal(specFor(settings, all, { fingerprint, notes }).fingerprint, fingerprint);
    assert.notEqual(specFor(settings, all).fingerprint, fingerprint);
    assert.notEqual(
      specFor({ ...settings, port: 446 }, all, { fingerprint, notes }).fingerprint,
      fingerprint,
    );
    for (const counted of [listening.interfaces, settings.listen]) {
      const former = createHash('sha256')
        .update(JSON.stringify([samba, paths.root, [445, counted]]))
        .digest('hex')
        .slice(0, 32);
      assert.equal(specFor(settings, listening, { fingerprint: former, notes: {} }).fingerprint, former);
    }
  });

  it('are the same in every spelling of IPv6', () => {
    const present = { lan0: [{ address: 'fd00::2', internal: false }] };
    for (const entry of ['FD00::2', 'fd00:0::2']) {
      const { interfaces, addresses } = resolveListen([entry], present);
      // What is announced in the network is compared with the machine's own spelling.
      assert.deepEqual([interfaces, addresses], [[entry], ['fd00::2']]);
    }
    assert.throws(() => resolveListen(['fd00::3'], present), /no such address/);
  });
});
