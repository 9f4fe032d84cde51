/** What the API says of a plugin that somebody brings back. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PluginContext, PluginInfo } from 'mountkeeper';
import { daemonRoutes } from '../../../plugins/control-api/daemon-routes.ts';

type Handler = (request: object, h: object) => { readonly message: string };

function broughtBack(info: Partial<PluginInfo>): string {
  const plugins = { list: () => [{ name: 'garden', ...info }], enable: () => true };
  const routes = daemonRoutes({ use: () => plugins } as unknown as PluginContext);
  const route = routes.find(({ path }) => path === '/api/plugins/{name}/enable');
  const h = { response: (answer: object) => answer };
  assert.ok(route);
  return (route.handler as unknown as Handler)({ params: { name: 'garden' } }, h).message;
}

describe('a plugin that is brought back', () => {
  it('is told of with what it may do beyond its permissions, and what to do about that', () => {
    assert.equal(broughtBack({}), "Bringing back the plugin 'garden'");
    assert.equal(
      broughtBack({ everyUser: { detail: 'it may do this', advice: 'do that' } }),
      "Bringing back the plugin 'garden'; it may do this; do that",
    );
  });
});
