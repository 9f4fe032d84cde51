import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Config, ExportersService, PluginInfo } from 'mountkeeper';
import { hitBy } from '../../../../plugins/dashboard/tabs/plugin-hits.ts';
import { loadLibraries } from '../../../../plugins/dashboard/pages/libraries.ts';
import { createView } from '../../../../plugins/dashboard/view.ts';

const view = createView({ language: 'en', host: 'nas.lan' });
const plugin = (...services: readonly string[]): PluginInfo =>
  ({ name: 'x', contributes: [['services', services]] }) as unknown as PluginInfo;
const share = (name: string, protocols: readonly string[]): Config['shares'][number] =>
  ({ name, protocols }) as unknown as Config['shares'][number];
const serving = (protocol: string, isEnabled?: boolean): ExportersService['list'] =>
  (() => [{ protocol, exporter: { isEnabled } }]) as unknown as ExportersService['list'];

describe('whom it hits when a plugin is switched off', () => {
  before(loadLibraries);

  it('names those that a protocol of a third party shows, and no other', () => {
    const config = { shares: [share('a', ['sftp']), share('b', ['smb'])] };
    const hit = (isEnabled?: boolean): readonly string[] =>
      hitBy(plugin('exporter:sftp'), { config, exporters: { list: serving('sftp', isEnabled) } }, view);
    assert.deepEqual(hit(), ['Whoever works on this share over sftp is cut off: a.']);
    assert.deepEqual(hit(false), [], 'its server is off');
    assert.deepEqual(hitBy(plugin('other'), { config, exporters: { list: serving('sftp') } }, view), []);
  });

  it('counts all of many and names the first', () => {
    const config = { shares: Array.from({ length: 200 }, (_, at) => share(`s${at}`, ['smb'])) };
    const [said = ''] = hitBy(plugin('mounter'), { config, exporters: { list: () => [] } }, view);
    assert.match(said, /^These 200 shares go on [^]*s18, s19, …\.$/);
  });
});
