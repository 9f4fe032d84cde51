import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PluginContext } from 'mountkeeper';
import { createTestHost } from 'mountkeeper/testing';
import { lentService } from '../../../../core/plugins/instance/acting-plugin.ts';
import { small } from '../../../support/plugins/small-plugins.ts';

class Pump {
  readonly #litres = 4;
  isOn = true;
  get litres(): number {
    return this.#litres;
  }
  water(bed: string): string {
    return `${bed} ${String(this.#litres)}`;
  }
}

describe('a service of others, as a third party inside the daemon gets it', () => {
  it('does what the service does, and is the same each time', () => {
    const pump = new Pump();
    const service = lentService(pump) as Pump;
    const { water } = service;
    assert.deepEqual([service.isOn, service.litres, water('roses')], [true, 4, 'roses 4']);
    pump.isOn = false;
    assert.equal(service.isOn, false);
    assert.equal(lentService(pump), service);
    for (const value of [undefined, null, 7, 'text']) assert.equal(lentService(value), value);
  });

  it('gives no way to the functions of its class, which all others call', () => {
    const pump = new Pump();
    const service = lentService(pump) as Pump & { constructor: { prototype: object } };
    const instead = { water: () => 'nothing' };
    for (const reached of [service, Object.getPrototypeOf(service) as object])
      assert.throws(() => Object.assign(reached, instead), TypeError);
    assert.equal(service.constructor, Object);
    assert.equal(pump.water('roses'), 'roses 4');
  });

  it('is what it is given by the host, whoever brings the service; ours get the service itself', async (t) => {
    const got = new Map<string, unknown>();
    const taker = (name: string) =>
      small(name, [], {
        requires: ['pump' as never, 'status'],
        declare: (ctx: PluginContext) =>
          ctx.effect('take', () => {
            got.set(`${name} pump`, ctx.use('pump' as never));
            got.set(`${name} status`, ctx.use('status'));
            return () => undefined;
          }),
      });
    const pump = new Pump();
    const test = await createTestHost({
      plugins: [
        small('well', [], { declare: (ctx) => ctx.provide('pump' as never, (() => pump) as never) }),
        taker('ours'),
        taker('theirs'),
      ],
      strangers: ['theirs'],
      config: { plugins: { theirs: { enabled: true } } },
    });
    t.after(() => test.close());
    assert.equal(test.info('theirs').state, 'active', test.info('theirs').reason);
    assert.equal(got.get('ours pump'), pump);
    assert.equal(got.get('ours status'), test.host.service('status'));
    for (const service of ['pump', 'status']) {
      const theirs = got.get(`theirs ${service}`) as object;
      const shared = got.get(`ours ${service}`) as object;
      assert.notEqual(Object.getPrototypeOf(theirs), Object.getPrototypeOf(shared), service);
      assert.ok(Object.isFrozen(theirs) && Object.isFrozen(Object.getPrototypeOf(theirs)), service);
    }
  });
});
