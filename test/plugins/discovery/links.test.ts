import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { announcedName } from '../../../plugins/discovery/config.ts';
import { linksOf } from '../../../plugins/discovery/links.ts';

const at = (address: string, internal = false) => ({
  address,
  internal,
  family: address.includes(':') ? 'IPv6' : 'IPv4',
  cidr: `${address}/24`,
});
const MACHINE = {
  lo: [at('127.0.0.1', true), at('::1', true)],
  eth0: [at('192.0.2.7'), at('192.0.2.8'), at('2001:db8::7'), at('fe80::1')],
  eth1: [at('198.51.100.7')],
  tun0: [at('2001:db8:1::7')],
};
const smb = (...addresses: string[]) => ({ service: '_smb._tcp', port: 445, addresses });

describe('networks that something is announced to', () => {
  it('are none while all listens on the machine itself', () => {
    assert.deepEqual(linksOf([smb('127.0.0.1'), smb('::1'), smb('127.0.0.5')], MACHINE), []);
  });

  it('are those that a server listens to, with the addresses it listens on', () => {
    assert.deepEqual(linksOf([smb('192.0.2.8', '127.0.0.1')], MACHINE), [
      {
        interfaceName: 'eth0',
        address: '192.0.2.7',
        network: '192.0.2.7/24',
        addresses: ['192.0.2.8'],
        offers: [smb('192.0.2.8', '127.0.0.1')],
      },
    ]);
  });

  it('are all when a server listens everywhere, each with its own addresses', () => {
    assert.deepEqual(
      linksOf([smb('0.0.0.0')], MACHINE).map(({ interfaceName, addresses }) => [interfaceName, addresses]),
      [
        ['eth0', ['192.0.2.7', '192.0.2.8']],
        ['eth1', ['198.51.100.7']],
      ],
    );
    assert.deepEqual(
      linksOf([smb('::')], MACHINE).map(({ addresses }) => addresses),
      [['192.0.2.7', '192.0.2.8', '2001:db8::7'], ['198.51.100.7']],
    );
  });

  it('hear only of what is served to them', () => {
    const nfs = { service: '_nfs._tcp', port: 2049, addresses: ['198.51.100.7'] };
    assert.deepEqual(
      linksOf([smb('192.0.2.7'), nfs], MACHINE).map(({ offers }) => offers.map(({ service }) => service)),
      [['_smb._tcp'], ['_nfs._tcp']],
    );
  });
});

describe('the name that is announced', () => {
  it("is the machine's, made fit for a network, unless one is set", () => {
    const set = (name: string, machine: string) => announcedName({ name, workgroup: 'WORKGROUP' }, machine);
    assert.deepEqual(
      [set('', 'Shelf.lan'), set('', 'my_shelf 2'), set('', '---'), set('photo-shelf', 'other')],
      ['Shelf', 'my-shelf-2', 'mountkeeper', 'photo-shelf'],
    );
  });
});
