import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { ConfigChanges } from '../../../../core/contract/config-changes.ts';
import type { Outcome } from '../../../../core/contract/dashboard.ts';
import { loadLibraries } from '../../../../plugins/dashboard/pages/libraries.ts';
import { pluginsTab } from '../../../../plugins/dashboard/tabs/plugins-tab.ts';
import { withPluginSwitched } from '../../../../plugins/dashboard/tabs/plugin-switch.ts';
import { createView } from '../../../../plugins/dashboard/view.ts';
import { API_PLUGINS, createApi } from '../../../api/fixture.ts';
import type { ApiFixture } from '../../../api/fixture.ts';

describe('switching a plugin in the text', () => {
  const cases: readonly (readonly [what: string, before: string, after: string])[] = [
    [
      'changes the key where it stands, notes kept',
      'a = 1\n[plugins.warmup] # mine\n# on\nenabled = true # yes\nx = 1\n[b]\nenabled = true\n',
      'a = 1\n[plugins.warmup] # mine\n# on\nenabled = false # yes\nx = 1\n[b]\nenabled = true\n',
    ],
    [
      "adds the key to the plugin's table",
      '[plugins.warmup]\nx = 1\n[b]\nenabled = true\n',
      '[plugins.warmup]\nenabled = false\nx = 1\n[b]\nenabled = true\n',
    ],
    ['adds the table at the end', 'a = 1', 'a = 1\n\n[plugins.warmup]\nenabled = false\n'],
    [
      'takes no other plugin for it',
      '[plugins.warmup-more]\nenabled = true\n',
      '[plugins.warmup-more]\nenabled = true\n\n[plugins.warmup]\nenabled = false\n',
    ],
    [
      'knows a quoted name',
      '[ plugins . "warmup" ]\nenabled=true\n',
      '[ plugins . "warmup" ]\nenabled= false\n',
    ],
  ];
  for (const [what, before, after] of cases)
    it(what, () => assert.equal(withPluginSwitched(before, 'warmup', false), after));

  it('comes back to the same text', () => {
    const text = '[plugins.warmup]\nenabled = true\n';
    assert.equal(withPluginSwitched(withPluginSwitched(text, 'warmup', false), 'warmup', true), text);
  });
});

describe('a plugin that is switched on the page', () => {
  before(() => loadLibraries());

  /** The action of the tab, in a daemon whose control API is there or off. */
  const switchLogs = async (api: ApiFixture): Promise<Outcome | undefined> => {
    const logs = { name: 'logs', state: 'active', thirdParty: false };
    const services: Readonly<Record<string, unknown>> = {
      config: api.config,
      plugins: { list: () => [logs] },
    };
    const tab = pluginsTab({
      use: (name: string) => services[name],
      find: (name: 'configChanges') => api.host.service(name),
    } as never);
    const view = createView({ language: 'en', host: 'h', tab, form: { name: 'logs', to: 'off' } });
    return tab.actions?.['switch']?.(view);
  };

  for (const [what, isApiOn] of [
    ['is in the history as from the dashboard', true],
    ['is switched also where no history is kept, as the control API is off', false],
  ] as const)
    it(what, async () => {
      const plugins = API_PLUGINS.filter(({ name }) => isApiOn || name !== 'control-api');
      const api = await createApi({ plugins });
      try {
        assert.equal((await switchLogs(api))?.ok, true);
        assert.match(await api.fileText(), /\[plugins\.logs\]\nenabled = false/);
        const changes = api.host.service('configChanges') as ConfigChanges | undefined;
        assert.deepEqual(
          changes?.history().map(({ by }) => by),
          isApiOn ? ['page', 'file'] : undefined,
        );
      } finally {
        await api.close();
      }
    });
});
