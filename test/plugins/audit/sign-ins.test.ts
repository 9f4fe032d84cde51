import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import type { RefusedSignIn } from 'mountkeeper';
import type { Entry } from '../../../plugins/audit/entries.ts';
import { SignIns } from '../../../plugins/audit/sign-ins.ts';

const MINUTE = 60_000;

function begin() {
  const clock = createManualClock();
  const written: Entry[] = [];
  const signIns = new SignIns(clock, (entry) => written.push(entry));
  const one = (given: Partial<RefusedSignIn> = {}): RefusedSignIn => ({
    address: '192.0.2.7',
    user: 'alice',
    isNobody: false,
    count: 1,
    since: clock.now(),
    ...given,
  });
  const add = (...given: Partial<RefusedSignIn>[]): void =>
    signIns.add('smb', { refused: given.map(one), others: 0 });
  return { clock, written, signIns, add };
}

describe('refused sign-ins in the record', () => {
  it('have a line at once for each address and name, then one a minute with their count', async () => {
    const { clock, written, add, signIns } = begin();
    const since = new Date(clock.now()).toISOString();
    add({ count: 2 }, { user: 'bob' }, { user: null, address: '192.0.2.8' });
    assert.deepEqual(written, [
      { event: 'refused', protocol: 'smb', user: 'alice', from: { address: '192.0.2.7' }, count: 2, since },
      { event: 'refused', protocol: 'smb', user: 'bob', from: { address: '192.0.2.7' }, count: 1, since },
      { event: 'refused', protocol: 'smb', from: { address: '192.0.2.8' }, count: 1, since },
    ]);
    signIns.add('webdav', {
      refused: [{ address: '192.0.2.7', user: 'alice', isNobody: false, count: 1, since: 0 }],
      others: 0,
    });
    assert.equal(written.at(-1)?.['protocol'], 'webdav');
    await clock.advance(3_000);
    const later = new Date(clock.now()).toISOString();
    for (let index = 0; index < 18; index += 1) {
      add({ count: 100 });
      await clock.advance(3_000);
    }
    assert.equal(written.length, 4);
    await clock.advance(3_000);
    assert.equal(written.length, 5);
    assert.deepEqual([written[4]?.['count'], written[4]?.['since']], [1_800, later]);
    await clock.advance(10 * MINUTE);
    assert.equal(written.length, 5);
    add({});
    assert.equal(written.length, 6, 'one that begins again has a line at once');
    add({ count: 4 });
    signIns.end();
    assert.deepEqual([written.length, written[6]?.['count']], [7, 4]);
  });

  it('have few lines in a flood of names and addresses, and each is counted', async () => {
    const { clock, written, add, signIns } = begin();
    for (let index = 0; index < 2_000; index += 1)
      add({ address: `2001:db8:${index.toString(16)}::1`, user: `name-${index}` });
    signIns.add('webdav', { refused: [], others: 7 });
    assert.equal(written.length, 60);
    await clock.advance(10 * MINUTE);
    assert.equal(written.length, 61);
    const { event, by, count, addresses } = written[60] as Entry;
    assert.deepEqual([event, by, count], ['more-attempts', 'sign-ins', 1_947]);
    assert.ok(Object.keys(addresses as object).length <= 11);
    await clock.advance(10 * MINUTE);
    assert.equal(written.length, 61);
  });

  it('have lines for what others try, however many names one address or network of IPv6 sends', async () => {
    const { clock, written, add } = begin();
    for (let index = 1; index <= 200; index += 1) {
      add({ user: `junk-${index}` }, { address: `2001:db8::${index.toString(16)}`, user: `junk-${index}` });
      if (index % 8 === 0) await clock.advance(3_000);
    }
    add({ address: '192.0.2.9' }, { address: '2001:db8:0:1::1' });
    assert.deepEqual(
      written.slice(24).map(({ user, from }) => [user, (from as { address: string }).address]),
      [
        ['alice', '192.0.2.9'],
        ['alice', '2001:db8:0:1::1'],
      ],
    );
    await clock.advance(10 * MINUTE);
    const { count, addresses } = written[26] as Entry;
    assert.equal(count, 376);
    assert.deepEqual(addresses, { '192.0.2.7': 188, '2001:db8:0:0::/64': 188 });
  });

  it('bring a notice from 20 within ten minutes on, which goes when it is over', async () => {
    const { clock, add, signIns } = begin();
    add({ count: 19 });
    assert.deepEqual(signIns.notices(), []);
    await clock.advance(8 * MINUTE);
    add({ count: 1 });
    const [notice, ...more] = signIns.notices();
    assert.equal(more.length, 0);
    assert.match(notice?.message ?? '', /at least 20 sign-ins from 192\.0\.2\.7 were refused/);
    await clock.advance(3 * MINUTE);
    assert.deepEqual(signIns.notices(), []);
    for (let index = 0; index < 300; index += 1) add({ address: `192.0.3.${index}`, user: null, count: 1 });
    // One network of IPv6 is one client.
    for (let index = 1; index < 30; index += 1) add({ address: `2001:db8::${index}`, user: null });
    add({ address: '192.0.2.9', count: 500 }, { address: '192.0.2.10', count: 400 });
    add({ address: '192.0.2.11', count: 300 }, { address: '192.0.2.12', count: 200 });
    assert.match(
      signIns.notices()[0]?.message ?? '',
      /from 192\.0\.2\.9, 192\.0\.2\.10, 192\.0\.2\.11, … were/,
    );
    await clock.advance(11 * MINUTE);
    assert.deepEqual(signIns.notices(), []);
    assert.equal(clock.pending, 0, 'nothing is kept, and nothing waits');
  });

  it("bring another notice where all names are nobody's", () => {
    const { add, signIns } = begin();
    add({ user: 'guest', isNobody: true, count: 30 });
    const [notice, ...more] = signIns.notices();
    assert.deepEqual([notice?.level, more.length], ['info', 0]);
    assert.match(notice?.message ?? '', /192\.0\.2\.7 were .* all with names that nobody has/);
    add({ address: '192.0.2.8', count: 20 });
    assert.deepEqual(
      signIns.notices().map(({ level, message }) => [level, /192\.0\.2\.\d/.exec(message)?.[0]]),
      [
        ['warning', '192.0.2.8'],
        ['info', '192.0.2.7'],
      ],
    );
    add({ count: 1 });
    assert.deepEqual(
      signIns.notices().map(({ level }) => level),
      ['warning'],
    );
  });

  it('bring no notice of what was long ago, nor of an address that is not known', () => {
    const { clock, add, signIns, written } = begin();
    add({ count: 30, since: clock.now() - 11 * MINUTE }, { address: 'unknown', count: 30 });
    assert.deepEqual(signIns.notices(), []);
    assert.equal(written.length, 2);
  });
});
