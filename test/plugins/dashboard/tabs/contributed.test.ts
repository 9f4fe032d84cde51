/** What a plugin contributes, as the page of plugins shows it to readers of other languages. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { contributedBy } from '../../../../core/plugins/contributed.ts';
import type { PluginInfo } from '../../../../core/contract/services.ts';
import { loadLibraries } from '../../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../../plugins/dashboard/pages/shell.ts';
import { contributions, held } from '../../../../plugins/dashboard/tabs/contributed.ts';
import { createView } from '../../../../plugins/dashboard/view.ts';
import { inTreePlugins } from '../../../support/plugins/in-tree.ts';

const HAN = /\p{Script=Han}/u;
const [english, chinese] = (['en', 'zh'] as const).map((language) => createView({ language, host: 'h' }));

function infoOf(traits: Partial<PluginInfo>): PluginInfo {
  return { effects: [], thirdParty: false, ...traits } as PluginInfo;
}

/** By kind. */
function shown(info: PluginInfo, view = chinese): ReadonlyMap<string, readonly string[]> {
  const page = view ? toHtml(contributions(info, view)) : '';
  return new Map(
    [...page.matchAll(/<dt>(.*?)<\/dt><dd><code>(.*?)<\/code>/g)].map(([, kind = '', names = '']) => [
      kind,
      names.split(view === english ? ', ' : '、'),
    ]),
  );
}

describe('what a plugin contributes', () => {
  before(() => loadLibraries());

  it("is in the reader's language for each that comes with the package", async () => {
    let count = 0;
    for (const found of await inTreePlugins()) {
      if (!found.plugin) continue;
      const names = shown(infoOf({ contributes: contributedBy(found.ledger) }));
      for (const kind of ['定时任务', '页面', '后台部件'])
        for (const name of names.get(kind) ?? []) {
          assert.match(name, HAN, found.name);
          assert.doesNotMatch(name, /\((?:tab|card|on each share)\)/);
          count += 1;
        }
    }
    assert.ok(count > 50, `${count} names`);
  });

  it('keeps what is typed somewhere, the words of strangers, and English', () => {
    const contributes = [
      ['services', ['setup']],
      ['jobs', ['count']],
      ['dashboard', ['uploads (on each share)', 'files (tab)']],
    ] as const;
    assert.deepEqual(
      [...shown(infoOf({ contributes, thirdParty: true })).values()],
      [['setup'], ['count'], ['uploads（各共享）', 'files（页面）']],
    );
    assert.deepEqual([...shown(infoOf({ contributes })).values()][0], ['setup']);
    assert.deepEqual(
      [...shown(infoOf({ contributes }), english).values()],
      [['setup'], ['count'], ['uploads (on each share)', 'files (tab)']],
    );
  });

  it('is named so also where it is held now', () => {
    assert.ok(chinese);
    const effects = ['SMB server', 'job count', 'every send what is due'];
    assert.equal(held(infoOf({ effects }), chinese), 'SMB 服务器、计数、发送到期的通知');
    assert.equal(held(infoOf({ effects: ['job count'], thirdParty: true }), chinese), 'job count');
  });
});
