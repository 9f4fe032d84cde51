/** Whatever a program can do by the API, somebody can do on the page: where, for each route that does something. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Tab } from '../../../../core/contract/dashboard.ts';
import { inTreePlugins } from '../../../support/plugins/in-tree.ts';

/** Of each route the tab, card or panel, and its action. */
const PLACES: Readonly<Record<string, readonly [tab: string, action: string]>> = {
  'POST /api/bwlimit': ['limit', 'set'],
  'POST /api/config': ['settings', 'apply'],
  'POST /api/config/check': ['settings', 'check'],
  'POST /api/plugins/{name}/enable': ['plugins', 'enable'],
  'POST /api/plugins/{name}/log-level': ['plugins', 'log-level'],
  'POST /api/preset/{profile}': ['settings', 'preset'],
  'POST /api/queue/{share}/conflicts': ['uploads', 'keep'],
  'POST /api/queue/{share}/discard': ['uploads', 'discard'],
  'POST /api/queue/{share}/pause': ['uploads', 'pause'],
  'POST /api/queue/{share}/receipt': ['uploads', 'prove'],
  'POST /api/queue/{share}/send': ['uploads', 'send'],
  'POST /api/queue/{share}/verify': ['uploads', 'prove'],
  'POST /api/reconnect/{share}': ['share-controls', 'reconnect'],
  'POST /api/refresh/{share}': ['dir-refresh', 'refresh'],
  'POST /api/sessions/{id}/end': ['sessions', 'end'],
  'POST /api/setup': ['setup', 'finish'],
  'POST /api/setup/check': ['setup', 'share'],
  'POST /api/setup/folders': ['setup', 'try'],
  'POST /api/sign-ins/{id}/end': ['sign-ins', 'end'],
  'POST /api/warmup/{share}': ['warmup', 'run'],
  'POST /api/warmup/{share}/cancel': ['warmup', 'cancel'],
  'POST /api/webhooks/deliveries/{id}/resend': ['notifications', 'again'],
  'POST /api/webhooks/test': ['notifications', 'test'],
};

describe('the page', () => {
  let routes: readonly string[];
  let tabs: readonly Tab[];
  before(async () => {
    const found = await inTreePlugins();
    const ledgers = found.flatMap((one) => (one.plugin ? [one.ledger] : []));
    tabs = ledgers.flatMap((ledger) => ledger.tabs);
    routes = ledgers
      .flatMap((ledger) => ledger.routes)
      .flatMap(({ method, path }) => [method].flat().map((one) => `${one.toUpperCase()} ${path}`))
      .filter((route) => / \/api\//.test(route) && !route.startsWith('GET '));
  });

  it('has a place for every route of the API that does something', () => {
    assert.deepEqual([...routes].sort(), Object.keys(PLACES).sort());
  });

  it('has the actions that the table names', () => {
    const missing = Object.entries(PLACES).filter(([, [id, action]]) => {
      const { actions = {} } = tabs.find((tab) => tab.id === id) ?? {};
      return !Object.hasOwn(actions, action);
    });
    assert.deepEqual(missing, []);
  });
});
