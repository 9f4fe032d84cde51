/** Reasons and notices in other languages: what is translated how, and that none of those in the code is missing. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { NOTES } from '../../../core/shares/share-status.ts';
import { CATALOGUES } from '../../../plugins/dashboard/languages.ts';
import { SAID, saidIn } from '../../../plugins/dashboard/said.ts';
import { PLAIN_SENTENCES } from '../../../plugins/mount/rclone/error-messages.ts';
import { PROJECT } from '../../runner/test-files.ts';
import { sentenceAt, sentencesIn, sources, strayValues, wordsIn } from '../../support/dashboard/sentences.ts';

/** Where a reason or a notice is written down: its text follows. */
const PLACES = [
  /level: [^\n]{1,60},\s*message:\s*/g,
  /\btrouble:\s*/g,
  /troubles\.push\(\s*/g,
  /(?:inPlainWords|remoteFailure)\([^\n]{1,60}?\], /g,
];
/** What the uploader gives as a reason is a whole sentence, wherever it stands. */
const UPLOADER = ['compare', 'transfer', 'proof'].map((folder) => `plugins/uploads/${folder}`);
/** All that these say in whole sentences comes to a notice or a reason. */
const SPEAKERS = [
  'core/config/checks/protocols.ts',
  'core/platform/certificates/certificates.ts',
  'core/platform/certificates/pair.ts',
  'core/platform/start-attempt.ts',
  'core/sdk/servers/server-address.ts',
  'plugins/audit/record.ts',
  'plugins/mount/recovery/recovery-report.ts',
  'plugins/webdav/exporter/users.ts',
  'plugins/webdav/system/accounts.ts',
  'plugins/webdav/system/group.ts',
];
/**
 * What these say becomes the reason of a share, its history or a notification, however short it is. A folder stands for
 * all in it.
 */
const REASONS = [
  'core/shares',
  'plugins/control-api/config/changes.ts',
  'plugins/control-api/config/trial.ts',
  'plugins/mount/layer',
  'plugins/mount/lifecycle',
  'plugins/nas-watch/events.ts',
  // What the page's guide says of its answers.
  'plugins/setup/answers.ts',
  'plugins/setup/service.ts',
  'plugins/uploads/uploader.ts',
  'plugins/webhooks/delivery',
  'plugins/webhooks/events',
  'plugins/webhooks/routes.ts',
];
/** A part of a program, a path, options, values of another format. */
const NO_SENTENCE = /[$\n]|\w=\w|^[./-]|^\S+\/|^[^ ]* ?[^ ]*$/;
/** Told to the log, to metrics or to the code that called. */
const TO_NOBODY = [
  'a message was there already',
  'another rclone is in use now',
  'check the path of a mount',
  'list what the lower layer shows',
  'look below a share',
  'marks of moved folders could not be updated',
  'names of the overlay at ',
  'share not ',
  'share state: ',
  'the supervisor has stopped',
  'the watch has ended',
  'what was being taken out of the write layer',
];
const SENTENCE_WORDS = 5;
const WHOLE = /(?<!\+\s*)(?<=[\s(:?])(?=['"`][A-Z][a-z']+ )/g;
/** A frame around something else, such as a name, says nothing itself. */
const FEWEST_WORDS = 3;

const nameless = (sentence: string): string => sentence.replaceAll(/\{\w+\}/g, '{}');
const textsIn = (folder: string): readonly string[] =>
  [...sources(join(PROJECT, folder))].map(({ text }) => text);
const textsAt = (path: string): readonly string[] =>
  path.endsWith('.ts') ? [readFileSync(join(PROJECT, path), 'utf8')] : textsIn(path);
const all = ['core', 'plugins'].flatMap(textsIn);

describe('what Mountkeeper says, in other languages', () => {
  it('is there for every notice and reason that the code writes down', () => {
    const written = all.flatMap((source) =>
      PLACES.flatMap((place) =>
        [...source.matchAll(place)].map(({ 0: { length }, index }) => sentenceAt(source, index + length)),
      ),
    );
    const uploader = UPLOADER.flatMap(textsIn).flatMap((source) =>
      [...source.matchAll(WHOLE)]
        .map(({ index }) => sentenceAt(source, index))
        .filter((sentence) => sentence?.endsWith('.')),
    );
    const speakers = SPEAKERS.flatMap((path) => sentencesIn(readFileSync(join(PROJECT, path), 'utf8')))
      .filter(({ sentence, before }) => wordsIn(sentence) >= SENTENCE_WORDS && !/log\.|^import/.test(before))
      .map(({ sentence }) => sentence);
    const reasons = REASONS.flatMap(textsAt)
      .flatMap(sentencesIn)
      .filter(({ before, isLogged }) => !isLogged && !/^import|\bfrom $/.test(before))
      .map(({ sentence }) => sentence)
      .filter((sentence) => !NO_SENTENCE.test(sentence))
      .filter((sentence) => !TO_NOBODY.some((start) => sentence.startsWith(start)));
    assert.ok(reasons.length > 80, `${reasons.length} reasons`);
    const found = [
      ...new Set([
        ...written,
        ...uploader,
        ...speakers,
        ...reasons,
        ...PLAIN_SENTENCES,
        ...Object.values(NOTES),
      ]),
    ]
      .filter((sentence) => sentence !== undefined)
      .filter((sentence) => wordsIn(sentence) >= FEWEST_WORDS && !sentence.startsWith('The example '));
    assert.ok(found.length > 50, `${found.length} sentences`);
    for (const [language, catalogue] of Object.entries(SAID)) {
      const known = new Set(Object.keys(catalogue).map(nameless));
      assert.deepEqual(
        found.filter((sentence) => !known.has(sentence)),
        [],
        `without a translation in plugins/dashboard/locales/said/${language}.json`,
      );
    }
    assert.deepEqual(
      Object.keys(SAID),
      Object.keys(CATALOGUES).filter((language) => language !== 'en'),
    );
  });

  it('has nothing that the code does not say any more, and no value that the code does not give', () => {
    // Literals that a plus sign joins are one text.
    const code = all
      .join('\n')
      .replaceAll(/['"`]\s*\+\s*['"`]/g, '')
      .replaceAll(/\\(['"`])/g, '$1');
    for (const catalogue of Object.values(SAID))
      for (const english of Object.keys(catalogue)) {
        const missing = english
          .split(/\{\w+\}/)
          .map((part) => part.replaceAll(/^[\s:]+|[\s:]+$/g, ''))
          .filter((part) => part.length > 12 && !code.includes(part));
        assert.deepEqual(missing, [], english);
      }
    assert.deepEqual(strayValues(SAID), []);
  });

  it('takes no sentence for another one', () => {
    for (const [language, catalogue] of Object.entries(SAID)) {
      const { '; ': _, ...sentences } = catalogue;
      const filled = (text: string): string =>
        text.replaceAll(/\{(\w+)\}/g, (__, name: string) => (name === 'count' ? '7' : `«${name}»`));
      for (const [english, translated] of Object.entries(sentences))
        assert.equal(saidIn(language, filled(english)), filled(translated), english);
    }
    const said = (text: string): string => saidIn('zh', text);
    assert.equal(
      said('The cache of the share photos is 95 % full (9 GiB of 10 GiB).'),
      '共享 photos 的缓存已用 95%（9 GiB，共 10 GiB）。',
    );
    assert.equal(
      said(
        "the settings that were applied last were taken back, since the share 'photos' was healthy and is not any " +
          'more: the remote does not answer (the remote refuses connections; is its service running, and is the ' +
          'port right?), and nothing that was cached can be read; 2 more shares are not healthy any more',
      ),
      '最近应用的设置已撤回，原因：共享“photos”原本正常，现已不正常：NAS 没有应答（NAS 拒绝连接；' +
        '请检查其服务是否在运行、端口是否正确），缓存的内容也无法读取；另有 2 个共享也不再正常',
    );
    assert.equal(
      said(
        'The share photos has failed: the mount point /mnt/x is not empty ("a" lies there); move its contents ' +
          'away or choose another mount_point',
      ),
      '共享 photos 失败：挂载点 /mnt/x 不为空（其中有“a”）；' + '请移走其内容，或另选 mount_point',
    );
    assert.equal(
      said(
        'the remote refused the user name or password (Failed to create file system for "nas:": NewFs: ' +
          "couldn't connect SSH: ssh: handshake failed)",
      ),
      'NAS 拒绝了用户名或密码（Failed to create file system for "nas:": NewFs: ' +
        "couldn't connect SSH: ssh: handshake failed）",
      'the words of rclone as a whole, or not at all',
    );
    assert.equal(said('Failed to write config file: disk full'), '无法写入配置文件：disk full');
    assert.equal(
      said('Not delivered: the receiver answered 500; it is tried again'),
      '未送达：接收者应答 500；将再次尝试',
    );
  });

  it('is found inside others and beside them, and keeps the words of servers', () => {
    const said = (text: string): string => saidIn('zh', text);
    assert.equal(
      said('there is no space left (sftp: "disk full"; really)'),
      '没有剩余空间（sftp: "disk full"; really）',
    );
    assert.equal(
      said(
        'the remote does not answer (the remote refuses connections; is its service running, and is the port ' +
          'right? (dial tcp 10.0.0.9:22: connection refused)); cached files stay readable, writes wait in the ' +
          'cache; its ceiling leaks; it is taken down as soon as its files are on the remote',
      ),
      'NAS 没有应答（NAS 拒绝连接；请检查其服务是否在运行、端口是否正确' +
        '（dial tcp 10.0.0.9:22: connection refused））；' +
        '已缓存的文件仍可读取，写入的内容在缓存中等待; its ceiling leaks; ' +
        '文件传到 NAS 后即会取消挂载',
    );
    assert.equal(
      said(
        '2 of the files written here cannot be brought to the remote (a/b: c.txt: the remote refuses it ' +
          '(Update Close failed: read-only file system)); they stay here',
      ),
      '此处写入的文件中有 2 个无法传到 NAS（a/b：c.txt: the remote refuses it (Update Close failed: ' +
        'read-only file system)）；它们保留在本地',
    );
    assert.equal(
      said(
        '1 of the files written here cannot be brought to the remote (a.txt: the remote refuses it ' +
          '(Update Close failed: read-only file system)); they stay here',
      ),
      '此处写入的文件中有 1 个无法传到 NAS（a.txt：NAS 拒绝了' +
        '（Update Close failed: read-only file system））；它们保留在本地',
    );
    assert.equal(
      said(`the share '<b> {share} $& ' does not answer over WebDAV`),
      '共享“<b> {share} $& ”通过 WebDAV 没有应答',
    );
    assert.equal(
      said("the mount's process ended with exit code 3 (no reason)"),
      '挂载进程已结束，退出码 3 (no reason)',
    );
    assert.equal(
      said(
        '3 files of the share my files with changes wait in /old/my files, a folder of a former cache.dir: ' +
          'they go up once cache.dir leads there again.',
      ),
      '共享 my files 有更改的3 个文件在以前的 cache.dir 文件夹 /old/my files 中等待：' +
        'cache.dir 再次指向那里后即会上传。',
    );
    assert.equal(
      said('the record of changes in /a cannot be written (EIO): 7 lines wait, and 2 are lost'),
      '无法写入 /a 中的更改记录（EIO）：7 行在等待，2 行已丢失',
    );
    assert.equal(
      said('web.tls: every user of this machine may read it; run: chmod o-rwx /k; nobody can connect'),
      'web.tls：本机的每个用户都可以读取它；请运行：chmod o-rwx /k; 没有人能连接',
    );
    assert.equal(
      said(
        'no notifications are sent: notifications.webhook_url names a loopback address, which gets no ' +
          'notifications; notifications.allow_private = true in the configuration file allows it',
      ),
      '不发送通知：notifications.webhook_url 指向本机回环地址，不会向其发送通知；' +
        '在配置文件中设置 notifications.allow_private = true 可以允许',
    );
    assert.equal(
      said('WebDAV: port 80 on :: is taken by another program (nginx?); stop that, or set webdav.port'),
      'WebDAV：:: 的端口 80 被其他程序（nginx？）占用；请停止它，或更改 webdav.port',
    );
    assert.equal(saidIn('en', 'there is no space left'), 'there is no space left');
    const long = `the share '${"a' is not shown over ".repeat(5_000)}`;
    assert.equal(said(long), long, 'and takes no time');
    const named = (letters: number): string =>
      `the share '${'a'.repeat(letters)}' does not answer over WebDAV`;
    assert.match(said(named(900)), /没有应答/);
    assert.equal(said(named(1_000)), named(1_000), 'nobody wrote that by hand');
  });
});
