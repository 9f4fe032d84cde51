/** Why a plugin is not up, in other languages: no sentence that the plugin host writes down is missing. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { FAILURES, SAID, saidIn } from '../../../plugins/dashboard/said.ts';
import { PROJECT } from '../../runner/test-files.ts';
import { sources, strayValues, toldIn, wordsIn } from '../../support/dashboard/sentences.ts';

/** What is told of a plugin that cannot be found, loaded, started or kept. */
const SPEAKERS = new RegExp(
  'core/plugins/(?:activate|broken-off|' +
    'discovery/(?:discover|manifest|missing-package|plugin-files|preflight(?:-child)?|strip-types)|' +
    'instance/(?:instance|ledger|own-config|recurring|scope)|' +
    'runner/process/(?:runner-(?:process|supervisor)|shared-runners))\\.ts$',
);
/** For whoever writes a plugin: told to the plugin itself, or to the log. */
const TO_AUTHORS =
  /^ctx\.|^too many folders|^\{\n|^the configuration keys|^plugin failed to take over|^(?:interval|job) failed/;
/** What stands around values, and says something by itself. */
const FEWEST_WORDS = 3;

function piecesOf(sentence: string): readonly string[] {
  return sentence
    .split('{}')
    .map((piece) => piece.replaceAll(/^[\s:;,(]+|[\s:;,)]+$/g, ''))
    .filter((piece) => wordsIn(piece) >= FEWEST_WORDS && piece.includes(' '));
}

describe('why a plugin is not up, in other languages', () => {
  const texts = [...sources(join(PROJECT, 'core/plugins'))].filter(({ path }) => SPEAKERS.test(path));

  it('is there for every reason that the plugin host writes down', () => {
    const pieces = texts
      .flatMap(({ text }) => toldIn(text))
      .filter((sentence) => !TO_AUTHORS.test(sentence))
      .flatMap(piecesOf);
    assert.ok(pieces.length > 60, `${pieces.length} pieces`);
    for (const [language, catalogue] of Object.entries(FAILURES)) {
      const known = Object.keys({ ...catalogue, ...SAID[language] }).join('\n');
      assert.deepEqual(
        [...new Set(pieces)].filter((piece) => !known.includes(piece)),
        [],
        `without a translation in plugins/dashboard/locales/failures/${language}.json`,
      );
    }
    assert.deepEqual(Object.keys(FAILURES), Object.keys(SAID));
  });

  it('gives every value that the English sentence has', () => {
    assert.deepEqual(strayValues(FAILURES), []);
  });

  it('is said with the package that is missing, and with the run that does not end', () => {
    const said = (text: string): string => saidIn('zh', text);
    assert.equal(
      said(
        `it imports the package "left-pad", which is not in its node_modules; run 'npm install left-pad' in /srv/a`,
      ),
      '它导入了软件包“left-pad”，但其 node_modules 中没有；请在 /srv/a 中运行“npm install left-pad”',
    );
    assert.equal(
      said(
        'its package "spade" imports the package "a", which was not installed with it; tell its author, or install ' +
          'another version',
      ),
      '其软件包“spade”导入了软件包“a”，但安装时没有装上它；请告知作者，或安装其他版本',
    );
    assert.equal(
      said(
        'its interval "water" has been running since 2026-11-28T15:00:00Z, and the next run waits for that',
      ),
      '其周期任务“water”自 2026-11-28T15:00:00Z 起一直在运行，下一次运行在等它结束',
    );
    assert.equal(
      said(
        'its job "nightly" has been running since 2026-11-28T15:00:00Z, and the times that come before it ends are ' +
          'left out',
      ),
      '其定时任务“nightly”自 2026-11-28T15:00:00Z 起一直在运行，在它结束之前到来的运行时间都会跳过',
    );
  });

  it('is said with what is wrong with its table, and keeps the words of others', () => {
    const said = (text: string): string => saidIn('zh', text);
    assert.equal(
      said('its configuration [plugins.lights] is not valid: colour must be a string'),
      '其配置 [plugins.lights] 无效：colour 必须是文本；请写在引号中',
    );
    assert.equal(
      said('its process ended 5 times within an hour, at last because it took more than 256 MiB of memory'),
      '其进程一小时内结束了 5 次，最后一次的原因：它占用的内存超过 256 MiB',
    );
    assert.equal(said("it cannot be loaded: Cannot find package 'x'"), "无法加载：Cannot find package 'x'");
    assert.equal(said('the lamp is broken'), 'the lamp is broken');
  });
});
