import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Answer, RecordType } from 'dns-packet';
import { isRival, plainReply, recordsOf, replyTo } from '../../../plugins/discovery/records.ts';
import type { Reply } from '../../../plugins/discovery/records.ts';

const RECORDS = recordsOf('shelf', {
  interfaceName: 'eth0',
  address: '192.0.2.7',
  network: '192.0.2.7/24',
  addresses: ['192.0.2.7', '2001:db8::7'],
  offers: [
    { service: '_smb._tcp', port: 4450, addresses: ['0.0.0.0'] },
    { service: '_nfs._tcp', port: 2049, addresses: ['0.0.0.0'], details: { path: '/' } },
  ],
});
const ask = (name: string, type: string, known: readonly Answer[] = []) =>
  replyTo([{ name, type: type as RecordType }], known, RECORDS);
const brief = (reply: Reply | undefined) =>
  reply && {
    answers: reply.answers.map(({ name, type }) => `${type} ${name}`),
    additionals: reply.additionals.map(({ name, type }) => `${type} ${name}`),
  };

describe('answers of multicast DNS', () => {
  it('give a browser all that it needs to connect in one reply', () => {
    assert.deepEqual(brief(ask('_smb._tcp.local', 'PTR')), {
      answers: ['PTR _smb._tcp.local'],
      additionals: [
        'SRV shelf._smb._tcp.local',
        'TXT shelf._smb._tcp.local',
        'A shelf.local',
        'AAAA shelf.local',
      ],
    });
    const [srv] = ask('shelf._smb._tcp.local', 'SRV')?.answers ?? [];
    assert.deepEqual(srv?.data, { port: 4450, target: 'shelf.local', priority: 0, weight: 0 });
    assert.deepEqual(ask('SHELF._nfs._tcp.LOCAL', 'TXT')?.answers[0]?.data, ['path=/']);
  });

  it("name every kind of service, and the machine's picture", () => {
    assert.deepEqual(
      ask('_services._dns-sd._udp.local', 'PTR')?.answers.map(({ data }) => data),
      ['_smb._tcp.local', '_nfs._tcp.local'],
    );
    assert.deepEqual(ask('shelf._device-info._tcp.local', 'ANY')?.answers[0]?.data, ['model=RackMac']);
  });

  it('are not given to questions about others, nor to who knows them', () => {
    assert.equal(ask('_ipp._tcp.local', 'PTR'), undefined);
    assert.equal(ask('other.local', 'A'), undefined);
    const known: Answer = { name: '_smb._tcp.local', type: 'PTR', ttl: 4_000, data: 'shelf._smb._tcp.local' };
    assert.equal(ask('_smb._tcp.local', 'PTR', [known]), undefined);
    assert.notEqual(ask('_smb._tcp.local', 'PTR', [{ ...known, ttl: 100 }]), undefined);
  });

  it('are short-lived for ordinary resolvers', () => {
    const reply = ask('shelf.local', 'A');
    assert.ok(reply);
    assert.deepEqual(plainReply(reply).answers, [
      { name: 'shelf.local', type: 'A', ttl: 10, flush: false, data: '192.0.2.7' },
    ]);
  });
});

describe('another machine in the network', () => {
  const srv = (target: string): Answer => ({
    name: 'Shelf._smb._tcp.local',
    type: 'SRV',
    data: { port: 4450, target, priority: 0, weight: 0 },
  });

  it('is a rival when it goes by the same name', () => {
    assert.equal(isRival([srv('other.local')], RECORDS), true);
    assert.equal(isRival([{ name: 'shelf.local', type: 'A', data: '192.0.2.99' }], RECORDS), true);
  });

  it('is none when it says the same, or goes by another', () => {
    assert.equal(
      isRival([srv('shelf.local'), { name: 'shelf.local', type: 'A', data: '192.0.2.7' }], RECORDS),
      false,
    );
    assert.equal(
      isRival(
        [
          { name: 'other.local', type: 'A', data: '192.0.2.99' },
          { name: '_smb._tcp.local', type: 'PTR', data: 'other._smb._tcp.local' },
        ],
        RECORDS,
      ),
      false,
    );
  });
});
