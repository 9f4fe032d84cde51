/** What is wrong between keys: names, mount points, folders, and secrets that cannot be had. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import { NAS, OpenedRooms, problemsOf, shareText } from '../../../support/config/config-fixture.ts';

const rooms = new OpenedRooms();

describe('checks across keys', () => {
  afterEach(() => rooms.close());

  it('find connections that do not exist and names that are taken', async () => {
    assert.deepEqual(
      await problemsOf(
        `${NAS}${NAS}${shareText('Straße')}${shareText('STRASSE')}${shareText('b').replace('"nas"', '"naas"')}`,
        rooms.open(),
      ),
      [
        '9:1 there are two connections called "nas"',
        '20:1 the shares "Straße" and "STRASSE" differ in case only',
        '25:1 share "b" lies on the connection "naas", which does not exist; did you mean "nas"?',
      ],
    );
  });

  it('find mount points that are equal or lie in each other, among many', async () => {
    const found = await problemsOf(
      `${NAS}${shareText('a', 'mount_point = "/srv/a"')}` +
        `${shareText('ab', 'mount_point = "/srv/ab"')}` +
        `${shareText('c', 'mount_point = "/srv/a/x/../y/"')}` +
        `${shareText('d', 'mount_point = "/srv/ab/"')}`,
      rooms.open(),
    );
    assert.deepEqual(found, [
      '19:1 the shares "a" and "c" have one mount point inside the other: /srv/a/ and /srv/a/y/',
      '23:1 the shares "ab" and "d" have the same mount point: /srv/ab/ and /srv/ab/',
    ]);
  });

  it('find a mount point that another share has by default', async () => {
    const found = await problemsOf(
      `${NAS}${shareText('a')}${shareText('b', 'mount_point = "/mnt/mountkeeper/a"')}`,
      rooms.open(),
    );
    assert.match(found[0] ?? '', /the same mount point/);
  });

  it('keep what the daemon uses off the shares, and the shares out of its folders', async () => {
    const opened = rooms.open();
    const text =
      `${NAS}${shareText('a', `mount_point = "${opened.folder}"`)}` +
      `${shareText('b', 'mount_point = "/c/x"')}${shareText('c', 'mount_point = "/var"')}[cache]\n` +
      'dir = "/c"\n[log]\nfile = "/var/log/x.log"\n';
    assert.deepEqual(
      (await problemsOf(text, opened)).map((problem) => problem.slice(problem.indexOf(') ') + 2)),
      [
        'holds the configuration file, which must not lie on the share',
        'lies inside cache.dir',
        'holds supervisor.state_dir, which must not lie on the share',
        'holds log.file, which must not lie on the share',
      ],
    );
  });

  it('find secrets that cannot be had, and name where they were sought', async () => {
    const opened = rooms.open({ env: { EMPTY: '' } });
    writeFileSync(join(opened.folder, 'blank'), '\n');
    const text =
      `${NAS}a = { env = "NOT_SET" }\nb = { env = "EMPTY" }\nc = { file = "no-such" }\n` +
      'd = { credential = "nas" }\ne = { file = "blank" }\n';
    assert.deepEqual(await problemsOf(text, opened), [
      '8:1 connections[0].options.a: the environment variable NOT_SET is not set',
      '9:1 connections[0].options.b: the environment variable EMPTY is empty',
      `10:1 connections[0].options.c: the file ${opened.folder}/no-such cannot be read: there is no such file`,
      '11:1 connections[0].options.d: the credential nas cannot be found: ' +
        '$CREDENTIALS_DIRECTORY is not set; pass it with LoadCredential= of systemd',
      `12:1 connections[0].options.e: the file ${opened.folder}/blank is empty`,
    ]);
  });

  it('warn of secrets that only the daemon may have, where it is another process', async () => {
    const opened = rooms.open({ isOffline: true });
    const text = `${NAS}a = { env = "NOT_SET" }\nb = { credential = "nas" }\n`;
    const check = await opened.service.check(text, 'file');
    assert.deepEqual(check.ok && check.loaded.warnings, [
      'connections[0].options.a: the environment variable NOT_SET is not set; the daemon may have it all the same',
      'connections[0].options.b: the credential nas cannot be found: $CREDENTIALS_DIRECTORY is not set; ' +
        'pass it with LoadCredential= of systemd; the daemon may have it all the same',
    ]);
    assert.match((await problemsOf(`${text}c = { file = "/no-such" }\n`, opened))[0] ?? '', /no such file/);
    const unnamed = await problemsOf(`${text}c = { credential = "in/a-folder" }\n`, opened);
    assert.match(unnamed[0] ?? '', /cannot be the name of a credential/);
  });

  it('do not touch a secret that lies on a share', async () => {
    const found = await problemsOf(
      `${NAS}key = { file = "/srv/a/key" }\n${shareText('a', 'mount_point = "/srv/a"')}`,
      rooms.open(),
    );
    assert.deepEqual(found, ["8:1 connections[0].options.key: the secret's file must not lie on a share"]);
  });
});
