/** The card of the servers: one that is off is told from one that is on and not up. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { serversPanel } from '../../../../plugins/dashboard/overview/panels.ts';
import { loadLibraries } from '../../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../../plugins/dashboard/pages/shell.ts';
import { isServerOn } from '../../../../plugins/dashboard/tabs/share-controls.ts';
import { createView } from '../../../../plugins/dashboard/view.ts';

describe('whether a server is on', () => {
  const config = { smb: { enabled: true }, nfs: { enabled: false }, webdav: { enabled: true } } as never;

  it('asks its plugin, too: its section outlives that', () => {
    const plugins = [
      { name: 'smb', state: 'failed' },
      { name: 'nfs', state: 'active' },
      { name: 'webdav', state: 'disabled' },
    ] as const;
    const on = (['smb', 'nfs', 'webdav'] as const).map((section) => isServerOn(section, config, plugins));
    assert.deepEqual(on, [true, false, false]);
    assert.equal(isServerOn('smb', config, []), false, 'it is not there at all');
  });
});

describe('the card of the servers', () => {
  before(() => loadLibraries());

  it('says of each whether it serves, is switched off, or is on and not ready', () => {
    const record = { smbdRunning: true, nfsExported: false, webdavRunning: false } as never;
    const view = createView({ language: 'en', host: 'nas.local' });
    const isOn = (section: string): boolean => section !== 'nfs';
    const page = toHtml(serversPanel({ record, offers: [], host: 'nas.local', isOn }, view));
    assert.match(page, /not ready: <a href="\/tabs\/doctor">the doctor says why<\/a>/);
    const viewer = createView({ language: 'en', host: 'nas.local', role: 'viewer' });
    assert.doesNotMatch(
      toHtml(serversPanel({ record, offers: [], host: 'nas.local', isOn }, viewer)),
      /tabs\/doctor/,
      'a page that a viewer may not see',
    );
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
