/** What is said on the page of folders that could not be read again. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { PluginContext, RefreshResult } from 'mountkeeper';
import { createManualClock } from '../../../core/testing/manual-clock.ts';
import { loadLibraries } from '../../../plugins/dashboard/pages/libraries.ts';
import { createView } from '../../../plugins/dashboard/view.ts';
import { refreshTab } from '../../../plugins/dir-refresh/tab.ts';

describe('a refresh on the page', () => {
  before(() => loadLibraries());

  const said = async (failed: RefreshResult['failed'], language: string): Promise<unknown> => {
    const services: Readonly<Record<string, unknown>> = {
      clock: createManualClock(),
      directoryRefresher: { refresh: async () => ({ ok: 0, failed }) },
    };
    const tab = refreshTab({
      use: (name: string) => services[name],
    } as Partial<PluginContext> as PluginContext);
    const outcome = await tab.actions?.['refresh']?.(
      createView({ language, host: 'h', share: 'photos', tab }),
    );
    assert.equal(outcome?.ok, false);
    return outcome?.message;
  };

  it('names the whole share where that failed, and the reason in the reader’s language', async () => {
    const failed = [{ path: '', reason: 'the NAS is offline' }];
    assert.equal(
      await said(failed, 'en'),
      '0 folders refreshed, 1 failed: the whole share: the NAS is offline',
    );
    assert.equal(await said(failed, 'zh'), '0 个文件夹已刷新，1 个失败：整个共享：NAS 已离线');
  });

  it('names a folder, and leaves a server’s own words', async () => {
    const failed = [{ path: '2024/mai', reason: 'no such thing' }];
    assert.equal(await said(failed, 'zh'), '0 个文件夹已刷新，1 个失败：2024/mai：no such thing');
    const late = [{ path: '', reason: 'not through within 15 minutes' }];
    assert.match(String(await said(late, 'zh')), /整个共享：15 分钟内未完成/);
  });
});
