import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { describe, it } from 'node:test';
import { encodeQR } from 'qr';
import decodeQR from 'qr/decode.js';
import { BORDER, qrDisclosure, squares } from '../../../../plugins/dashboard/overview/qr-panel.ts';
import { addressOf, hostForOthers, isLocalOnly } from '../../../../plugins/dashboard/overview/share-data.ts';
import { loadLibraries } from '../../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../../plugins/dashboard/pages/shell.ts';
import { createView } from '../../../../plugins/dashboard/view.ts';

const SCALE = 8;

/** As a camera would see it: the squares of the path on white. */
function seen(path: string, size: number): { width: number; height: number; data: Uint8Array } {
  const width = size * SCALE;
  const data = new Uint8Array(width * width * 4).fill(255);
  for (const [, x = '', y = ''] of path.matchAll(/M(\d+) (\d+)h1v1h-1z/g)) {
    for (let down = 0; down < SCALE; down += 1) {
      for (let right = 0; right < SCALE; right += 1) {
        const at = ((Number(y) * SCALE + down) * width + Number(x) * SCALE + right) * 4;
        data.fill(0, at, at + 3);
      }
    }
  }
  return { width, height: width, data };
}

describe('codes for phones', () => {
  it('are read as the address', () => {
    for (const address of ['smb://keeper/photos', 'http://192.168.1.5:8091/%E7%85%A7%E7%89%87/']) {
      const modules = encodeQR(address, 'raw', { border: BORDER });
      assert.equal(decodeQR(seen(squares(modules), modules.length)), address);
    }
  });

  it('name this machine as others reach it', () => {
    assert.deepEqual(['127.0.0.1', 'keeper.local'].map(hostForOthers), [hostname(), 'keeper.local']);
  });

  it('are not drawn of what leads a phone to itself', () => {
    for (const address of ['smb://127.0.0.1/a', 'http://localhost:8091/a/', 'smb://[::1]:1445/a']) {
      assert.equal(isLocalOnly(address), true, address);
    }
    for (const address of ['smb://keeper/a', 'nfs://192.168.1.5/a', 'http://[fe80::1]:8091/a/']) {
      assert.equal(isLocalOnly(address), false, address);
    }
  });

  it('are left open on a card as long as its addresses are the same', async () => {
    await loadLibraries();
    const view = createView({ language: 'en', host: 'keeper' });
    const drawn = (...ports: readonly number[]): string => {
      const at = (port: number) => addressOf('WebDAV', 'photos', { host: 'keeper', port });
      return toHtml(qrDisclosure('photos', ports.map(at), view));
    };
    assert.match(drawn(80), /data-kept/);
    assert.equal(drawn(80), drawn(80));
    for (const other of [drawn(81), drawn(80, 81)])
      for (const name of ['id', 'data-kept']) {
        const value = (markup: string): string | undefined =>
          new RegExp(` ${name}="([^"]+)"`).exec(markup)?.[1];
        assert.notEqual(value(drawn(80)), value(other), name);
      }
  });
});
