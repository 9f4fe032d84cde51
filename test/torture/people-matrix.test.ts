/**
 * Five people, six shares, three protocols: who can list, read, write and rename what is what the configuration says,
 * before and after each of more than twenty changes, in what was open as well. Takes about ten minutes. Another order
 * of changes, and others: MOUNTKEEPER_PEOPLE_SEED=7.
 */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { Access } from '../support/clients/protocols.ts';
import { seeded } from '../support/config/random-documents.ts';
import { Daemon } from '../support/daemon/daemon.ts';
import { Nas } from '../support/nas/nas.ts';
import { CHANGES, shuffled } from '../support/people/changes.ts';
import { LARGE_BYTES } from '../support/people/held-open.ts';
import { PeopleMatrix } from '../support/people/matrix.ts';
import type { Office } from '../support/people/model.ts';
import { freePort } from '../support/platform/free-port.ts';
import { createScratch } from '../support/platform/scratch-folder.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';

const SEED = Number(process.env['MOUNTKEEPER_PEOPLE_SEED'] ?? 1);
const PEOPLE = ['anna', 'ben', 'carl', 'dora', 'emil'];
const SHARES = ['open', 'team', 'look', 'boss', 'plans', 'photos'];

function office(): Office {
  const logins = () => PEOPLE.map((name) => ({ name, password: `pw of ${name}` }));
  return {
    typed: Object.fromEntries(logins().map(({ name, password }) => [name, password])),
    addresses: Object.fromEntries(PEOPLE.map((name, index) => [name, `127.0.0.${11 + index}`])),
    smb: logins(),
    webdav: logins(),
    guest: false,
    groups: { office: ['anna', 'ben'], lookers: ['dora'], nobody: [] },
    allowed: ['127.0.0.0/8'],
    shares: {
      open: {},
      team: { users: ['@office'], read_only_users: ['carl'], clients: ['127.0.0.12/30'] },
      look: { read_only_users: ['@lookers', 'anna'], read_only_clients: ['127.0.0.11', '127.0.0.14'] },
      boss: { users: ['dora'], clients: ['127.0.0.14'] },
      plans: { users: ['anna', 'ben', 'carl', 'dora'], protocols: ['smb', 'webdav'] },
      photos: {},
    },
  };
}

describe(`who may enter what, by seed ${SEED}`, () => {
  const random = seeded(SEED);
  let scratch: Scratch;
  let matrix: PeopleMatrix;

  before(async () => {
    scratch = await createScratch('people');
    const files = Object.fromEntries(SHARES.map((share) => [`${share}/large.bin`, LARGE_BYTES]));
    const nas = await Nas.create(scratch, { files });
    for (const share of SHARES) await writeFile(nas.path(share, 'seed.txt'), `the seed of ${share}\n`);
    const ports = { smb: await freePort(), nfs: await freePort(), webdav: await freePort() };
    const access: Access = { scratch, ports, user: '' };
    const shares = SHARES.map((name) => ({ name, connection: 'nas', remote_path: name }));
    const daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares,
      sections: {
        smb: { enabled: true, port: ports.smb },
        webdav: { enabled: true, port: ports.webdav },
        nfs: { enabled: true, port: ports.nfs },
      },
    });
    await daemon.start();
    await daemon.healthy();
    matrix = new PeopleMatrix(office(), { daemon, access, shares, random });
    assert.deepEqual(await matrix.begin(), []);
  });
  after(async () => {
    matrix.close();
    await scratch.close();
  });

  it('is what the configuration says, in what is open too', { timeout: 3_600_000 }, async () => {
    const kinds = shuffled(Object.keys(CHANGES), random);
    const wrong: string[] = [];
    let turns = 0;
    for (;;) {
      const turn = await matrix.turn(kinds);
      if (!turn) break;
      turns += 1;
      const { cells, changed, held, said, settledMs } = turn;
      console.log(
        `${turns}: ${said}; ${changed} of ${cells} cells are others, ` +
          `right after ${(settledMs / 1000).toFixed(1)} s; ${held} open`,
      );
      for (const one of turn.wrong) console.log(`  WRONG: ${one}`);
      wrong.push(...turn.wrong.map((one) => `after "${said}": ${one}`));
    }
    assert.deepEqual(wrong, []);
    assert.ok(turns >= 20, `${turns} changes; without a turn: ${kinds.join(', ')}`);
  });
});
