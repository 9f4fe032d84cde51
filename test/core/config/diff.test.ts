import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ConfigDiff } from '../../../core/contract/config.ts';
import { NAS, PHOTOS, openRoom } from '../../support/config/config-fixture.ts';

async function difference(before: string, after: string): Promise<ConfigDiff> {
  const room = openRoom({ env: { WORD: 'x' } });
  try {
    await room.run(before);
    const check = await room.service.check(after, 'file');
    assert.ok(check.ok, check.ok ? '' : check.message);
    return check.diff;
  } finally {
    room.close();
  }
}

describe('the difference of two documents', () => {
  it('is none when only the spelling differs', async () => {
    const spelled =
      '# a comment\nshares = [{ connection = "nas", name = "photos", read_only = false, ' +
      `mount_point = "/mnt/mountkeeper/photos" }]\n${NAS}[web]\nport = 8090\n`;
    assert.deepEqual(await difference(PHOTOS, spelled), {
      changes: [],
      tier: undefined,
      summary: 'No changes',
    });
  });

  it('gives each change its tier and the whole the highest', async () => {
    const diff = await difference(
      PHOTOS,
      `${PHOTOS}protocols = ["nfs"]\ndir_refresh_interval = "5m"\n[web]\nport = 1\n`,
    );
    assert.deepEqual(
      diff.changes.map(({ path, tier }) => [path, tier]),
      [
        ['shares.photos.protocols', 'protocol'],
        ['shares.photos.dir_refresh_interval', 'live'],
        ['web.port', 'live'],
      ],
    );
    assert.equal(diff.tier, 'protocol');
    assert.equal(
      diff.summary,
      'shares.photos.protocols: ["smb", "nfs", "webdav"] → ["nfs"]\n' +
        'shares.photos.dir_refresh_interval: added "5m"\nweb.port: 8090 → 1',
    );
  });

  it('knows all tiers by what changed', async () => {
    const tiers = await Promise.all(
      [
        '[supervisor]\npoll_interval = "3s"',
        '[smb]\nenabled = true',
        '[cache]\nmax_size = "1G"',
        '[log]\nlevel = "debug"',
        '[supervisor]\nstate_dir = "/x"',
        '[plugins.smb]\nenabled = false',
        '[plugins.unknown]\nx = 1',
        '[bandwidth]\nup = "1M"',
      ].map(async (change) => (await difference(PHOTOS, `${PHOTOS}${change}\n`)).tier),
    );
    assert.deepEqual(tiers, ['live', 'protocol', 'global', 'restart', 'restart', 'live', 'live', 'live']);
  });

  it('says that a change of the log waits for the restart', async () => {
    assert.equal(
      (await difference(PHOTOS, `${PHOTOS}[log]\nlevel = "debug"\n`)).summary,
      'log.level: "info" → "debug" (waits for the restart)',
    );
  });

  it('matches shares by name, whatever their place', async () => {
    const before = `${PHOTOS}[[shares]]\nname = "b"\nconnection = "nas"\n`;
    const after =
      `${NAS}[[shares]]\nname = "new one"\nconnection = "nas"\nremote_path = "/n"\n` +
      '[[shares]]\nname = "b"\nconnection = "nas"\nread_only = true\n';
    const diff = await difference(before, after);
    assert.equal(
      diff.summary,
      'shares.photos: removed\nshares.b.read_only: false → true\nshares."new one": added',
    );
    assert.deepEqual(
      diff.changes.map(({ before: from, after: to }) => [typeof from, typeof to]),
      [
        ['object', 'undefined'],
        ['boolean', 'boolean'],
        ['undefined', 'object'],
      ],
    );
    assert.equal(diff.tier, 'per-share');
  });

  it('tells a renamed share and a new order', async () => {
    assert.equal(
      (await difference(PHOTOS, PHOTOS.replace('"photos"', '"照片"'))).summary,
      'shares.photos: renamed to "照片"',
    );
    const [a, b] = ['a', 'b'].map((name) => `[[shares]]\nname = "${name}"\nconnection = "nas"\n`);
    const diff = await difference(`${NAS}${a}${b}`, `${NAS}${b}${a}`);
    assert.deepEqual([diff.summary, diff.tier], ['shares: order changed', 'live']);
  });

  it('never shows a secret, neither in the summary nor in the changes', async () => {
    const after = PHOTOS.replace('correct horse', 'battery staple')
      .replace('host =', 'odd_one = "battery staple"\nhost =')
      .concat('[web]\npassword = "battery staple"\n[[smb.users]]\nname = "u"\npassword = "battery staple"\n');
    const diff = await difference(PHOTOS, after);
    assert.doesNotMatch(JSON.stringify(diff), /horse|staple/);
    assert.equal(
      diff.summary,
      'connections.nas.options.pass: changed\nconnections.nas.options.odd_one: added\n' +
        'web.password: set\nsmb.users.u: added',
    );
    const back = await difference(after, after.replaceAll('battery staple', 'x'));
    assert.equal(
      back.summary,
      'connections.nas.options.odd_one: changed\nconnections.nas.options.pass: changed\n' +
        'web.password: changed\nsmb.users.u.password: changed',
    );
    assert.equal(
      (await difference(after, `${after}`.replace(/\[web\]\npassword = .*\n/, ''))).summary,
      'web.password: cleared',
    );
    assert.equal(
      (await difference(after, after.replace('pass = "battery staple"', 'pass = { env = "WORD" }'))).summary,
      'connections.nas.options.pass: changed',
    );
  });

  it('compares arrays without names as a whole and keeps lines short', async () => {
    const rules = Array.from(
      { length: 40 },
      (_, index) => `[[warmup.rules]]\nshare = "photos"\npath = "folder-${index}"\n`,
    ).join('');
    const diff = await difference(PHOTOS, `${PHOTOS}${rules}`);
    assert.deepEqual(
      diff.changes.map((change) => change.path),
      ['warmup.rules'],
    );
    assert.ok(diff.summary.length < 120, diff.summary);
    assert.match(diff.summary, /^warmup\.rules: \[\] → \[\{ share = "photos", .*…$/);
  });

  it('is readable for hundreds of changes', async () => {
    const many = Array.from(
      { length: 300 },
      (_, index) => `[[shares]]\nname = "s${index}"\nconnection = "nas"\n`,
    ).join('');
    assert.match((await difference(NAS, `${NAS}${many}`)).summary, /\nshares\.s199: added\nand 100 more$/);
  });
});
