import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Ledger } from '../../core/plugins/instance/ledger.ts';
import { inTreePlugins } from '../support/plugins/in-tree.ts';

/** What only one plugin may declare. */
function claimsOf({ services, statusFields, handlers, cli, metrics, tabs, routes }: Ledger): string[] {
  return [
    ...services.map(({ name }) => `service ${name}`),
    ...statusFields.map(({ field }) => `status field ${field}`),
    ...handlers.map(({ command }) => `command ${command}`),
    ...cli.map(({ name }) => `subcommand ${name}`),
    ...metrics.map(({ name }) => `metric ${name}`),
    ...tabs.map(({ id }) => `tab ${id}`),
    ...routes.map(({ method, path }) => `route ${String(method)} ${path}`),
  ];
}

describe('the plugins that come with the package', () => {
  it('can all be on at once, those too that are off by default', async () => {
    const found = await inTreePlugins();
    const owners = new Map<string, string>();
    for (const one of found) {
      assert.ok(one.plugin, one.name);
      for (const claim of claimsOf(one.ledger)) {
        assert.equal(owners.get(claim), undefined, `${one.name} and ${owners.get(claim) ?? ''}: ${claim}`);
        owners.set(claim, one.name);
      }
    }
    assert.ok(owners.has('status field nasOffline') && owners.has('route GET /example'));
  });
});
