import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findCircle, sortByServices } from '../../../core/plugins/order.js';

const node = (name: string, requires: string[] = [], provides: string[] = []) => ({
  name,
  requires,
  provides,
});
const names = (nodes: readonly { name: string }[]) => nodes.map((one) => one.name).join(' ');

describe('order of activation', () => {
  it('puts providers before those who require them', () => {
    assert.equal(
      names(
        sortByServices([node('a', ['s']), node('b', ['t']), node('c', [], ['t']), node('d', ['t'], ['s'])]),
      ),
      'c d a b',
    );
  });

  it('keeps the given order where nothing depends on anything', () => {
    assert.equal(names(sortByServices([node('c'), node('a', ['clock']), node('b')])), 'c a b');
  });

  it('lists every plugin of a circle once', () => {
    const nodes = [node('a', ['y'], ['x']), node('b', ['x'], ['y']), node('c', ['x'])];
    assert.deepEqual(
      sortByServices(nodes)
        .map((one) => one.name)
        .sort(),
      ['a', 'b', 'c'],
    );
    assert.deepEqual(findCircle(nodes[0]!, nodes), ['a', 'b']);
    assert.deepEqual(findCircle(nodes[2]!, nodes), []);
  });
});
