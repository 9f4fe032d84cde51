/** From which level on a plugin logs: chosen on its page, by the service that the API uses. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ConfigChanges } from '../../../../core/contract/config-changes.ts';
import type { Outcome, Tab, View } from '../../../../core/contract/dashboard.ts';
import type { Role } from '../../../../core/contract/http.ts';
import { loadLibraries } from '../../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../../plugins/dashboard/pages/shell.ts';
import { pluginsTab } from '../../../../plugins/dashboard/tabs/plugins-tab.ts';
import { createView } from '../../../../plugins/dashboard/view.ts';
import { createApi } from '../../../api/fixture.ts';
import type { ApiFixture } from '../../../api/fixture.ts';

describe('the log level of a plugin on its page', () => {
  let api: ApiFixture;
  let tab: Tab;
  let state = 'active';
  before(async () => {
    await loadLibraries();
    api = await createApi();
    const logs = { name: 'logs', version: '1', description: 'Logs.', thirdParty: false, effects: [] };
    const services: Readonly<Record<string, unknown>> = {
      config: api.config,
      plugins: { list: () => [{ ...logs, state }], readme: async () => undefined },
      exporters: { list: () => [] },
    };
    tab = pluginsTab({
      use: (name: string) => services[name],
      find: (name: 'configChanges') => api.host.service(name),
    } as never);
  });
  after(() => api.close());

  const view = (form: Readonly<Record<string, string>>, role: Role = 'admin', language = 'en'): View =>
    createView({ language, host: 'h', role, tab, form, query: { plugin: 'logs' } });
  const set = async (level: string, name = 'logs'): Promise<Outcome | undefined> =>
    tab.actions?.['log-level']?.(view({ name, level }));
  const drawn = async (one = view({})): Promise<string> => toHtml(await tab.render(one));

  it('is set at once and shown, and is in the history as from the dashboard', async () => {
    assert.match(await drawn(), /<option value="default" selected[^>]*>as the whole daemon \(info\)/);
    const { ok, message } = (await set('debug')) ?? {};
    assert.deepEqual(
      [ok, message],
      [true, 'It logs from "debug" on now; that is written into the configuration.'],
    );
    assert.match(await api.fileText(), /\[plugins\.logs\]\nlog_level = "debug"/);
    assert.match(await drawn(), /data-kept="debug"[^]*<option value="debug" selected/);
    const changes = api.host.service('configChanges') as ConfigChanges;
    assert.equal(changes.history()[0]?.by, 'page');
    assert.equal((await set('default'))?.ok, true);
    assert.doesNotMatch(await api.fileText(), /log_level/);
  });

  it('is refused where there is no such level or plugin', async () => {
    const former = await api.fileText();
    assert.deepEqual([(await set('loud'))?.ok, (await set('debug', 'none'))?.ok], [false, false]);
    assert.equal(await api.fileText(), former);
  });

  it('is offered to nobody but administrators, and for no plugin that is off', async () => {
    assert.doesNotMatch(await drawn(view({}, 'operator')), /<select/);
    const inChinese = await drawn(view({}, 'admin', 'zh'));
    assert.match(inChinese, /从此级别开始记录日志[^]*与整个服务相同（info）/);
    state = 'disabled';
    assert.doesNotMatch(await drawn(), /<select/);
    state = 'active';
  });
});
