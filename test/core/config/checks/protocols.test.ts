import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { protocolNotice } from '../../../../core/config/checks/protocols.ts';
import type { ProtocolName } from '../../../../core/config/checks/protocols.ts';
import type { ConfigOrigin } from '../../../../core/contract/config.ts';
import { accepted, openRoom, PROTOCOLS } from '../../../support/config/config-fixture.ts';

const text = (protocols?: readonly string[]) =>
  `[[connections]]\nname = "nas"\ntype = "sftp"\n[[shares]]\nname = "files"\nconnection = "nas"\n${
    protocols === undefined ? '' : `protocols = ${JSON.stringify(protocols)}\n`
  }`;

const HTTP: ProtocolName = { name: 'http', plugin: 'listing', isProvided: false, isNameable: true };
const GOPHER: ProtocolName = { name: 'gopher', plugin: 'burrow', isProvided: true, isNameable: false };

function openPlugins(t: TestContext, provided: readonly ProtocolName[] = [...PROTOCOLS, HTTP, GOPHER]) {
  const room = openRoom({ protocols: () => provided });
  t.after(() => room.close());
  return room;
}

function open(t: TestContext) {
  const { service } = openPlugins(t);
  return (protocols?: readonly string[], origin: ConfigOrigin = 'file') =>
    service.check(text(protocols), origin);
}

describe('protocols of a share', () => {
  it('are all that are there, where it names none', async (t) => {
    const { config, warnings } = accepted(await open(t)());
    assert.deepEqual(config.shares[0]?.protocols, ['smb', 'nfs', 'webdav', 'gopher']);
    assert.deepEqual(warnings, []);
  });

  it('may be none', async (t) => {
    assert.deepEqual(accepted(await open(t)([])).config.shares[0]?.protocols, []);
  });

  const refused = [
    [
      'shares[0].protocols[1]',
      7,
      'share "files" names the protocol "webdaf", which no plugin provides; ' +
        'did you mean "webdav"?; there are smb, nfs, webdav, http, gopher',
    ],
  ];

  it('that no plugin provides are refused over HTTP, with those that there are', async (t) => {
    const check = await open(t)(['smb', 'webdaf'], 'http');
    assert.ok(!check.ok);
    assert.deepEqual(
      check.problems.map(({ path, line, message }) => [path, line, message]),
      refused,
    );
  });

  it('that no plugin provides are refused where somebody checks the file', async (t) => {
    const { service, file } = openPlugins(t);
    writeFileSync(file, text(['smb', 'webdaf']), { mode: 0o600 });
    const check = await service.loadFile({ isStrict: true });
    assert.ok(!check.ok);
    assert.deepEqual(
      check.problems.map(({ path, line, message }) => [path, line, message]),
      refused,
    );
  });

  it('that no plugin provides are a warning where a daemon reads the file', async (t) => {
    const { service, file } = openPlugins(t, PROTOCOLS);
    writeFileSync(file, text(['smb', 'ftp', 'webdaf']), { mode: 0o600 });
    const { config, warnings } = accepted(await service.loadFile());
    assert.deepEqual(config.shares[0]?.protocols, ['smb', 'ftp', 'webdaf']);
    const said = [
      'share "files" names the protocol "ftp", which no plugin provides: it is not shown over that',
      'share "files" names the protocol "webdaf", which no plugin provides: it is not shown over that; ' +
        'did you mean "webdav"?',
    ];
    assert.deepEqual(warnings, said);
    const message = said.join('. ');
    assert.deepEqual(protocolNotice(config, PROTOCOLS), { level: 'warning', message });
  });

  it('are no notice while their plugins are there, on or off', async (t) => {
    const { config } = accepted(await open(t)(['smb', 'http', 'gopher']));
    assert.equal(protocolNotice(config, [...PROTOCOLS, HTTP, GOPHER]), undefined);
  });

  it('outlive their plugin, switched off over HTTP', async (t) => {
    const former = openPlugins(t);
    const off = `${text(['smb', 'gopher'])}[plugins.burrow]\nenabled = false\n`;
    await former.run(text(['smb', 'gopher']));
    accepted(await former.service.check(off, 'http'));
    // The next start of the daemon, which knows nothing of the plugin.
    const { service, run } = openPlugins(t, PROTOCOLS);
    await run(off);
    const next = `${off}[bandwidth]\nup = "1M"\n`;
    assert.match(accepted(await service.check(next, 'http')).warnings.join(), /"gopher", which no plugin/);
    const typo = await service.check(next.replace('"smb"', '"smp"'), 'http');
    assert.ok(!typo.ok);
    assert.deepEqual(
      typo.problems.map(({ path }) => path),
      ['shares[0].protocols[0]'],
    );
  });

  it('of plugins that come with the package may be named while these are broken', async (t) => {
    const { service } = openPlugins(t, []);
    for (const origin of ['file', 'http'] as const) {
      const { warnings } = accepted(await service.check(text(['smb', 'nfs', 'webdav']), origin));
      assert.match(warnings.join(), /"smb" of the plugin "smb", which is off or cannot be loaded/);
      assert.equal(warnings.length, 3);
    }
  });

  it('of a plugin that is off are taken, with a warning', async (t) => {
    const { config, warnings } = accepted(await open(t)(['http']));
    assert.deepEqual(config.shares[0]?.protocols, ['http']);
    assert.match(
      warnings.join(),
      /protocol "http" of the plugin "listing", which is off or cannot be loaded/,
    );
  });

  it('that only a plugin which is on knows are taken, with what its package.json lacks', async (t) => {
    const { warnings } = accepted(await open(t)(['gopher']));
    assert.match(warnings.join(), /"burrow" is off: its package.json should say .*"protocols": \["gopher"\]/);
  });

  it('are names', async (t) => {
    const check = await open(t)(['../SMB']);
    assert.ok(!check.ok);
    assert.match(check.message, /must be a name of small letters/);
  });
});
