import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RefusedSignInCounts } from 'mountkeeper';
import { refusedSignIns } from '../../../../plugins/audit/sign-ins.ts';

describe('counts of refused sign-ins', () => {
  it('are by address and name, and begin anew once they were taken', () => {
    const counts = new RefusedSignInCounts();
    assert.equal(counts.take(), undefined);
    for (const at of [5, 6, 7]) counts.add({ address: '192.0.2.1', user: 'alice', isNobody: false, at });
    counts.add({ address: '192.0.2.1', user: 'bob', isNobody: false, at: 8 });
    counts.add({ address: '192.0.2.2', user: null, isNobody: false, at: 9 });
    assert.deepEqual(counts.take(), {
      refused: [
        { address: '192.0.2.1', user: 'alice', isNobody: false, count: 3, since: 5 },
        { address: '192.0.2.1', user: 'bob', isNobody: false, count: 1, since: 8 },
        { address: '192.0.2.2', user: null, isNobody: false, count: 1, since: 9 },
      ],
      others: 0,
    });
    assert.equal(counts.take(), undefined);
  });

  it('say whether all were tried with names that nobody has', () => {
    const counts = new RefusedSignInCounts();
    const add = (user: string | null, isNobody: boolean): void =>
      counts.add({ address: '192.0.2.1', user, isNobody, at: 1 });
    add('guest', true);
    add('guest', true);
    add('new', true);
    add('new', false);
    const told = counts.take()?.refused.map(({ user, isNobody }) => [user, isNobody]);
    assert.deepEqual(told, [
      ['guest', true],
      ['new', false],
    ]);
  });

  it('name what others try, however many names one address or network of IPv6 sends', () => {
    const counts = new RefusedSignInCounts();
    for (let index = 1; index <= 500; index += 1) {
      counts.add({ address: '192.0.2.1', user: `junk-${index}`, isNobody: false, at: 1 });
      counts.add({ address: `2001:db8::${index}`, user: `junk-${index}`, isNobody: false, at: 1 });
    }
    counts.add({ address: '192.0.2.1', user: 'junk-1', isNobody: false, at: 2 });
    counts.add({ address: '192.0.2.9', user: 'alice', isNobody: false, at: 3 });
    counts.add({ address: '2001:db8:0:1::1', user: 'alice', isNobody: false, at: 4 });
    const { refused = [] } = counts.take() ?? {};
    assert.deepEqual(
      refused.filter(({ user }) => user === 'alice').map(({ address }) => address),
      ['192.0.2.9', '2001:db8:0:1::1'],
    );
    assert.deepEqual(
      refused.map(({ user, count }) => [user === null ? 'none' : user.slice(0, 4), count].join(' ')).sort(),
      ['alic 1', 'alic 1', ...Array.from({ length: 15 }, () => 'junk 1'), 'junk 2', 'none 492', 'none 492'],
    );
    for (let index = 1; index <= 8; index += 1)
      counts.add({ address: '192.0.2.1', user: `${index}`, isNobody: false, at: 1 });
    assert.ok(
      counts.take()?.refused.every(({ user }) => user !== null),
      'it begins anew',
    );
  });

  it('stay small and whole, whatever is tried, and fit the event', () => {
    const counts = new RefusedSignInCounts();
    for (let index = 0; index < 2_000; index += 1)
      counts.add({
        address: '192.0.2.1',
        user: `${index}${'\u{1f600}'.repeat(5_000)}`,
        isNobody: false,
        at: index,
      });
    for (let index = 0; index < 2_000; index += 1)
      counts.add({
        address: `2001:db8:1111:${index}:3333:4444:5555:6666`,
        user: 'x',
        isNobody: false,
        at: index,
      });
    counts.add({ address: '', user: '\n"', isNobody: false, at: 1 });
    const told = counts.take();
    assert.ok(told);
    assert.ok(told.refused.length < 100 && JSON.stringify(told).length < 16_384);
    assert.ok(told.refused.every(({ user }) => (user ?? '').length <= 64));
    const sum = told.refused.reduce((all, { count }) => all + count, told.others);
    assert.equal(sum, 4_001);
    const ofFirst = told.refused.filter(({ address }) => address === '192.0.2.1');
    assert.equal(
      ofFirst.reduce((all, { count }) => all + count, 0),
      2_000,
      'one that tries many names stays known by its address',
    );
    assert.equal(refusedSignIns.validate(told, { convert: false }).error, undefined);
  });
});
