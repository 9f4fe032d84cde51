import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Config } from 'mountkeeper';
import { AddressBook, shareData } from '../../../../plugins/dashboard/overview/share-data.ts';
import type { ProtocolOffer } from '../../../../plugins/dashboard/overview/share-data.ts';
import { createView } from '../../../../plugins/dashboard/view.ts';
import { emptyShareStatus } from '../../../support/shares/status-records.ts';

const SMB = '_smb._tcp';

const given = { cache: { max_size: '1G' }, shares: [{ name: 'files', protocols: ['smb', 'webdav'] }] };
const configured = given as unknown as Config;
/** One for all: it must see what has changed. */
const book = new AddressBook();

function addresses(offers: readonly ProtocolOffer[], config = configured): readonly string[] {
  book.renew({ config, offers, host: 'keeper' });
  const data = shareData(
    { ...emptyShareStatus('files'), mounted: true },
    {
      cacheLimit: 1_073_741_824,
      live: new Map(),
      addresses: (share) => book.of(share),
      since: () => undefined,
      speeds: () => [],
    },
  );
  return data.addresses.map(({ address }) => address);
}

describe("a share's addresses", () => {
  it('are those of the server of its protocol, not of another that offers the same service', () => {
    const stranger = { protocol: 'other', service: SMB, port: 446, addresses: ['192.0.2.9'] };
    assert.deepEqual(addresses([stranger]), []);
    const smb = { protocol: 'smb', service: SMB, port: 445, addresses: ['0.0.0.0'] };
    assert.deepEqual(addresses([stranger, smb]), ['smb://keeper/files']);
    const hidden = { ...given, shares: [] } as unknown as Config;
    assert.deepEqual(addresses([stranger, smb], hidden), []);
  });

  it('say whether WebDAV goes over TLS', () => {
    const webdav = (service: string) => [{ protocol: 'webdav', service, port: 8080, addresses: ['0.0.0.0'] }];
    assert.deepEqual(addresses(webdav('_webdav._tcp')), ['http://keeper:8080/files/']);
    assert.deepEqual(addresses(webdav('_webdavs._tcp')), ['https://keeper:8080/files/']);
  });
});

describe('a time', () => {
  it('that is no moment is a dash, since a plugin may have given it', () => {
    const view = createView({ language: 'en', host: 'keeper' });
    assert.deepEqual(
      ['x', NaN, 9e15].map((at) => view.time(at as never)),
      ['–', '–', '–'],
    );
  });
});
