/** Packages of plugins on the page of plugins: who is shown a form, what is under way, and what came of it. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Role } from '../../../../core/contract/http.ts';
import type { PackageChange, PackageSearch } from '../../../../core/contract/services.ts';
import { loadLibraries } from '../../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../../plugins/dashboard/pages/shell.ts';
import { pluginsTab } from '../../../../plugins/dashboard/tabs/plugins-tab.ts';
import { createView } from '../../../../plugins/dashboard/view.ts';

const FORM = /hx-post="\/dashboard\/do\/plugins\/install"/;
const GARDEN = {
  name: 'garden',
  version: '1.0.0',
  description: 'Waters.',
  thirdParty: true,
  isolation: 'own',
  effects: [],
  permissions: ['network'],
};

describe('packages of plugins on the page', () => {
  let refusal: 'off' | 'nobody-asked' | undefined;
  let change: PackageChange | undefined;
  let search: PackageSearch | undefined;
  let state = 'disabled';
  let isInstalled = true;
  let document: object = {};
  const said: unknown[] = [];
  const packages = {
    get refusal() {
      return refusal;
    },
    get change() {
      return change;
    },
    get search() {
      return search;
    },
    begin: (order: unknown) => void said.push(order),
    agree: (what: string, question: string) =>
      what === change?.order.what && question === change.question ? undefined : 'question',
    look: (words: string) => void said.push(words),
  };
  const services: Readonly<Record<string, unknown>> = {
    config: {
      get current() {
        return { config: { shares: [], plugins: {}, log: { level: 'info' } }, document };
      },
      keys: () => [],
    },
    plugins: { list: () => [{ ...GARDEN, state, isInstalled }], readme: async () => undefined },
    exporters: { list: () => [] },
    pluginPackages: packages,
  };
  const of = (name: string): unknown => services[name];
  const tab = pluginsTab({ use: of, find: of } as never);
  const view = (form: Readonly<Record<string, string>> = {}, role: Role = 'admin', language = 'en') =>
    createView({ language, host: 'h', role, tab, form });
  const drawn = async (one = view()): Promise<string> =>
    toHtml([tab.controls?.(one) ?? null, await tab.render(one)]);

  before(() => loadLibraries());

  it('are installed from nowhere while the file does not say so, and where nobody is asked', async () => {
    refusal = 'off';
    const off = await drawn();
    assert.match(off, /plugin remove NAME[^]*Where the configuration file says .*install_from_page = true/);
    refusal = 'nobody-asked';
    const open = await drawn();
    assert.match(open, /nobody is asked for a password here: anybody could\. Set web\.password in that file first/);
    for (const page of [off, open]) assert.doesNotMatch(page, FORM);
    for (const page of [off, open]) assert.doesNotMatch(page, /plugins\/(?:update|remove|search|agree)"/);
    refusal = undefined;
    assert.match(await drawn(), FORM);
    assert.doesNotMatch(await drawn(view({}, 'operator')), FORM);
  });

  it('are updated and removed where they were installed, and removed only while they are off', async () => {
    assert.match(await drawn(), /plugins\/update"[^]*plugins\/remove"/);
    state = 'active';
    assert.match(await drawn(), /The plugin is on: the new version runs at once/);
    assert.doesNotMatch(await drawn(), /plugins\/remove"/);
    isInstalled = false;
    assert.doesNotMatch(await drawn(), /plugins\/update"/);
    [state, isInstalled] = ['disabled', true];
  });

  it('are switched on by lines for the file, which do not say a table twice', async () => {
    assert.match(await drawn(), /data-copy="\[plugins\.garden\]\nenabled = true\n"/);
    document = { plugins: { garden: { enabled: false } } };
    assert.match(
      await drawn(),
      /set in \[plugins\.garden\] of the configuration file[^]*data-copy="enabled = true\n"/,
    );
  });

  it('are named as they were typed, and the record says which', async () => {
    const outcome = await tab.actions?.['install']?.(view({ package: ' @friend/garden ' }));
    assert.deepEqual([outcome?.ok, outcome?.about], [true, { package: '@friend/garden' }]);
    await tab.actions?.['search']?.(view({ words: 'roses' }));
    assert.deepEqual(said, [{ verb: 'install', what: '@friend/garden' }, 'roses']);
    assert.deepEqual(tab.questions, ['search']);
  });

  it('show what is under way, why it failed, and what has to be agreed to, as text', async () => {
    const order = { verb: 'update', what: 'garden' } as const;
    change = { order, startedAt: 0, state: 'running', said: 'npm looks for <b>garden</b> …' };
    assert.match(await drawn(), /Updating <bdi>garden<\/bdi> …[^]*npm looks for &lt;b>garden/);
    const question = 'version 2.0.0 may also start processes, and the plugin is on';
    change = { ...change, state: 'failed', problem: `garden stays: ${question}`, question };
    assert.match(await drawn(), /was not updated\.[^]*garden stays: version 2\.0\.0[^]*Agree and go on/);
    const agree = (words: string) => tab.actions?.['agree']?.(view({ what: 'garden', question: words }));
    assert.deepEqual((await agree(question))?.about, { package: 'garden', agreed: question });
    assert.equal((await agree('another'))?.ok, false);
    const result = {
      name: 'garden',
      version: '2.0.0',
      former: '1.0.0',
      package: 'garden',
      integrity: 'sha512-x',
      provenance: '',
      permissions: ['processes'],
      hasScripts: true,
      warnings: ['its table lacks a key'],
    } as const;
    change = { order, startedAt: 0, state: 'done', said: '', result };
    const words = (await drawn(view({}, 'admin', 'en'))).replace(/<[^>]*>/g, ' ');
    for (const word of [
      '2.0.0',
      'in place of 1.0.0',
      'sha512-x',
      'shows none',
      'start processes',
      'not run',
      'lacks a key',
    ])
      assert.ok(words.includes(word), word);
    assert.match(await drawn(view({}, 'admin', 'zh')), /取代 1\.0\.0/);
    search = {
      words: 'x',
      state: 'done',
      found: [{ name: 'roses', version: '1.0.0', description: '<i>Red</i>' }],
    };
    assert.match(await drawn(), /&lt;i>Red&lt;\/i>[^]*name="package" value="roses"/);
    search = { words: '', state: 'failed', found: [], problem: 'the registry cannot be reached' };
    assert.match(await drawn(), /Plugins in the registry[^]*the registry cannot be reached/);
  });
});
