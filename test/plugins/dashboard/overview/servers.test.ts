/** The card of the servers: one that is off is told from one that is on and not up. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { serversPanel } from '../../../../plugins/dashboard/overview/panels.ts';
import { loadLibraries } from '../../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../../plugins/dashboard/pages/shell.ts';
import { createView } from '../../../../plugins/dashboard/view.ts';

describe('the card of the servers', () => {
  before(() => loadLibraries());

  it('says of each whether it serves, is switched off, or is on and not ready', () => {
    const record = { smbdRunning: true, nfsExported: false, webdavRunning: false } as never;
    const view = createView({ language: 'en', host: 'nas.local' });
    const isOn = (section: string): boolean => section !== 'nfs';
    const page = toHtml(serversPanel({ record, offers: [], host: 'nas.local', isOn }, view));
    const lines = [...page.matchAll(/<li data-tone="(\w+)">(.*?)<\/li>/gs)].map(([, tone, text = '']) => [
      tone,
      text.replaceAll(/<[^>]+>/g, '').trim(),
    ]);
    assert.deepEqual(lines, [
      ['good', 'SMB Serving'],
      ['off', 'NFS Off'],
      ['warn', 'WebDAV On, but not ready: the doctor says why'],
    ]);
  });
});
