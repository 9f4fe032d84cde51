import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Config } from 'mountkeeper';
import { allows, clientsOf, schema, shareSchema } from '../../../plugins/nfs/config.ts';
import { checks } from '../../../plugins/nfs/doctor.ts';
import { ExportBook } from '../../../plugins/nfs/export-ids.ts';
import { nfsPaths } from '../../../plugins/nfs/paths.ts';
import { pathProblem, renderConfig, standing } from '../../../plugins/nfs/server-config.ts';
import type { ServedExport } from '../../../plugins/nfs/server-config.ts';

const settings = {
  paths: nfsPaths('/var/lib/mountkeeper'),
  port: 2049,
  listen: '127.0.0.1',
  uid: 1000,
  gid: 100,
};
const photos: ServedExport = {
  share: '照片 Photos',
  path: '/mnt/照片 Photos',
  readOnly: false,
  clients: { write: ['127.0.0.0/8', '::1'], read: [] },
  id: 7,
  instance: 'boot 100 5',
};

async function inFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'mountkeeper-book-'));
  try {
    await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

describe('configuration of NFS-Ganesha', () => {
  it('lets go of descriptors, speaks version 4 alone and lets nobody in by default', () => {
    const text = renderConfig(settings, []);
    for (const line of [
      'FD_LWMark_Percent = 0;',
      'LRU_Run_Interval = 2;',
      'Protocols = 4;',
      'Access_Type = None;',
      'Enable_NLM = false;',
      'Bind_addr = 127.0.0.1;',
    ])
      assert.ok(text.includes(line), line);
    assert.doesNotMatch(text, /EXPORT \{/);
  });

  it('shows a share by its Unicode name to the allowed clients, who act as the owner of the mounts', () => {
    const text = renderConfig(settings, [photos]);
    for (const line of [
      'Export_Id = 7;',
      'Path = "/mnt/照片 Photos";',
      'Pseudo = "/照片 Photos";',
      'Squash = All_Squash;',
      'Anonymous_Uid = 1000;',
      'Clients = 127.0.0.0/8, ::1;',
      'Access_Type = RW;',
    ])
      assert.ok(text.includes(line), line);
    assert.ok(renderConfig(settings, [{ ...photos, readOnly: true }]).includes('Access_Type = RO;'));
    assert.doesNotMatch(renderConfig(settings, [{ ...photos, clients: { write: [], read: [] } }]), /CLIENT/);
  });

  it('keeps no attributes of a mirror, which would make it say that files are not there', () => {
    const ofMirror = /Attr_Expiration_Time = 0;/;
    assert.match(renderConfig(settings, [{ ...photos, isMirror: true }]), ofMirror);
    assert.doesNotMatch(
      renderConfig(settings, [
        { ...photos, isMirror: false },
        { ...photos, id: 8 },
      ]),
      ofMirror,
    );
  });

  it('closes every block, whatever is exported', () => {
    const text = renderConfig(settings, [
      photos,
      { ...photos, share: 'team', id: 8, path: '/mnt/{team}' },
    ]).replaceAll(/"[^"]*"/g, '""');
    assert.equal(text.split('{').length, text.split('}').length);
  });

  it('takes no path that would end its own quotation', () => {
    assert.equal(pathProblem("/mnt/it's ünï 春节 #1 {x}"), undefined);
    for (const path of ['/mnt/a"b', '/mnt/a\\b', '/mnt/a\nb'])
      assert.match(pathProblem(path) ?? '', /mount_point/, path);
  });

  it('has what comes back under another number or path go first', () => {
    const team = { ...photos, share: 'team', id: 8 };
    assert.deepEqual(standing([photos, team], [photos, { ...team, id: 9 }]), [photos]);
    assert.deepEqual(standing([photos], [{ ...photos, path: '/elsewhere' }, team]), [team]);
    assert.deepEqual(standing([photos], [{ ...photos, readOnly: true }]), [{ ...photos, readOnly: true }]);
  });
});

describe('numbers of exports', () => {
  it('never come again, over restarts too', () =>
    inFolder(async (folder) => {
      const drawn: number[] = [];
      for (let restart = 0; restart < 20; restart += 1) {
        const book = new ExportBook(join(folder, 'book'));
        await book.open();
        for (let count = 0; count < 5; count += 1) drawn.push(await book.draw([]));
      }
      assert.equal(new Set(drawn).size, 100);
      assert.ok(drawn.every((id) => id >= 1 && id <= 65_535));
    }));

  it('go round at the end and leave out those in use', () =>
    inFolder(async (folder) => {
      await writeFile(join(folder, 'book'), JSON.stringify({ next: 65_535, exports: [] }));
      const book = new ExportBook(join(folder, 'book'));
      await book.open();
      assert.deepEqual([await book.draw([]), await book.draw([{ ...photos, id: 1 }])], [65_535, 2]);
    }));

  it('are on the disk before they are used, beside what is exported', () =>
    inFolder(async (folder) => {
      const book = new ExportBook(join(folder, 'book'));
      const id = await book.draw([photos]);
      const page = JSON.parse(await readFile(join(folder, 'book'), 'utf8')) as {
        next: number;
        exports: unknown;
      };
      assert.deepEqual([page.next, page.exports], [id === 65_535 ? 1 : id + 1, [photos]]);
    }));
});

describe('allowed clients', () => {
  it('hold an address by itself or in a network', () => {
    assert.deepEqual(
      [
        allows(['127.0.0.0/8'], '127.0.0.1'),
        allows(['192.168.1.0/24'], '192.168.2.1'),
        allows(['10.0.0.5'], '10.0.0.5'),
        allows(['0.0.0.0/0'], '203.0.113.9'),
        allows(['::1'], '127.0.0.1'),
        allows(['::1'], '::1'),
      ],
      [true, false, true, true, false, true],
    );
    assert.deepEqual(
      [
        allows(['fd00::/8'], 'fd12::1'),
        allows(['fd00::/8'], 'fe80::1'),
        allows(['::/0'], '2001:db8::1'),
        allows(['::/0'], '127.0.0.1'),
        allows([], '::1'),
      ],
      [true, false, true, false, false],
    );
  });

  it('are nobody until somebody is named, and that is told', async () => {
    assert.deepEqual((schema.validate({}).value as { allowed_clients: string[] }).allowed_clients, []);
    const told = async (allowed_clients: string[]) =>
      (await checks({ nfs: { enabled: true, allowed_clients }, shares: [] } as unknown as Config)).find(
        ({ title }) => title === 'NFS clients',
      );
    const empty = await told([]);
    assert.deepEqual(
      [empty?.result, empty?.detail],
      [
        'warning',
        'nfs.allowed_clients is empty: no machine may mount the shares over NFS; name addresses or networks there',
      ],
    );
    assert.equal((await told(['192.168.1.0/24']))?.result, 'ok');
    assert.match((await told(['::/0']))?.detail ?? '', /every machine is let in/);
  });

  it('are named in a way that the server takes, all of them too', () => {
    assert.match(
      renderConfig(settings, [
        { ...photos, clients: { write: ['0.0.0.0/0', '::/0', 'fd00::/8'], read: [] } },
      ]),
      /Clients = 0\.0\.0\.0\/1, 128\.0\.0\.0\/1, ::\/1, 8000::\/1, fd00::\/8;/,
    );
  });

  it('are those of the share where it names some, and who may only look stands first', () => {
    const share = (keys: object) => ({ name: 'photos', connection: 'nas', ...keys });
    const config = (keys: object) =>
      ({ nfs: { allowed_clients: ['10.0.0.0/8'] }, shares: [share(keys)] }) as unknown as Config;
    assert.deepEqual(clientsOf(config({}), 'photos'), { write: ['10.0.0.0/8'], read: [] });
    assert.deepEqual(clientsOf(config({ clients: ['192.0.2.7'] }), 'photos'), {
      write: ['192.0.2.7'],
      read: [],
    });
    assert.deepEqual(clientsOf(config({ read_only_clients: ['192.0.2.7'] }), 'photos'), {
      write: [],
      read: ['192.0.2.7'],
    });
    assert.deepEqual(clientsOf(config({}), 'gone'), { write: [], read: [] });
    const blocks = (readOnly: boolean) =>
      [
        ...renderConfig(settings, [
          { ...photos, readOnly, clients: { write: ['10.0.0.0/8'], read: ['10.0.0.9', '::1'] } },
        ]).matchAll(/Clients = (.*);\n\s*Access_Type = (\w+);/g),
      ].map(([, clients, access]) => [clients, access]);
    assert.deepEqual(blocks(false), [
      ['10.0.0.9, ::1', 'RO'],
      ['10.0.0.0/8', 'RW'],
    ]);
    assert.deepEqual(
      blocks(true).map(([, access]) => access),
      ['RO', 'RO'],
    );
  });

  it('of a share are no IPv4 addresses in the form of IPv6, and never an empty list', () => {
    const problem = (clients: string[]) => shareSchema.validate({ clients }).error?.message ?? '';
    for (const mapped of ['::ffff:192.0.2.1', '::FFFF:c000:201', '0:0:0:0:0:ffff:192.0.2.1', '::ffff:0:0/96'])
      assert.match(problem([mapped]), /write it as IPv4/, mapped);
    for (const plain of ['fd00::ffff', '::1', 'ffff::/16', '192.0.2.0/24'])
      assert.equal(problem([plain]), '', plain);
    assert.match(problem([]), /names nobody/);
  });

  it('are addresses and networks and nothing that the server would read otherwise', () => {
    const problem = (allowed_clients: string[]) => schema.validate({ allowed_clients }).error?.message;
    for (const client of ['10.0.0.0/8', '192.0.2.7', 'FD00::/8', '::ffff:192.0.2.1', '::/0', '2001:0db8::1'])
      assert.equal(problem([client]), undefined, client);
    for (const client of [
      'v1.a;Access_Type=RW',
      '010.0.0.1',
      'fe80::1%eth0',
      '10.0.0.0/33',
      '10.0.0.0/08',
      'nas-gate',
      '*',
      '',
    ])
      assert.match(
        problem([client]) ?? '',
        /must be an address or a network|not allowed to be empty/,
        client,
      );
    assert.match(schema.validate({ listen: 'v1.a;x=1' }).error?.message ?? '', /must be an address$/);
  });
});
