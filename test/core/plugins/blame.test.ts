import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { stackOf } from '../../../core/platform/log/thrown.ts';
import { ownPlaceOf, pluginToBlame } from '../../../core/plugins/blame.ts';
import { ODD_THROWS } from '../../support/plugins/odd-throws.ts';

const FOLDERS = new Map([
  ['garden', '/state/plugins/garden@1'],
  ['gar', '/state/plugins/gar'],
  ['odd', '/state/plugins/o d#1'],
]);

function thrown(...places: string[]): Error {
  return Object.assign(new Error('x'), {
    stack: ['Error: x', ...places.map((place) => `    at ${place}`)].join('\n'),
  });
}

const TIMER = [
  'listOnTimeout (node:internal/timers:581:17)',
  'process.processTimers (node:internal/timers:519:7)',
];

describe('an error that nobody caught', () => {
  it("is a plugin's in whose folder the work began", () => {
    assert.equal(
      pluginToBlame(
        thrown('Timeout._onTimeout (file:///state/plugins/garden@1/index.js:4:9)', ...TIMER),
        FOLDERS,
      ),
      'garden',
    );
    assert.equal(pluginToBlame(thrown('/state/plugins/gar/lib/x.cjs:1:2'), FOLDERS), 'gar');
    assert.equal(
      pluginToBlame(thrown('async run (file:///state/plugins/o%20d%231/index.js:1:2)'), FOLDERS),
      'odd',
    );
    assert.equal(
      pluginToBlame(
        thrown(
          'core (file:///opt/mk/dist/core/status.js:1:1)',
          'poll (file:///state/plugins/garden@1/index.js:4:9)',
          ...TIMER,
        ),
        FOLDERS,
      ),
      'garden',
      'it called the core',
    );
  });

  it("is nobody's when it went through the core, or cannot be told", () => {
    assert.equal(
      pluginToBlame(
        thrown(
          'tap (file:///state/plugins/garden@1/index.js:4:9)',
          'Cycle.run (file:///opt/mk/dist/core/shares/supervisor.js:1:1)',
          ...TIMER,
        ),
        FOLDERS,
      ),
      undefined,
    );
    for (const error of [
      thrown(),
      thrown(...TIMER),
      thrown('x (file:///state/plugins/garden@12/index.js:1:1)'),
      'a text',
      undefined,
      null,
      7,
    ])
      assert.equal(pluginToBlame(error, FOLDERS), undefined, String(error));
    assert.equal(
      pluginToBlame(Object.assign(new Error('x'), { stack: '/state/plugins/gar/x.js:1:1' }), FOLDERS),
      undefined,
      'a message is no frame',
    );
  });

  it('is that of the plugin that the code works for where the stack names no place', () => {
    for (const error of [
      thrown(),
      thrown(...TIMER),
      'a text',
      undefined,
      null,
      Symbol('odd'),
      ...Object.values(ODD_THROWS),
    ])
      if (!stackOf(error).includes('file:')) assert.equal(pluginToBlame(error, FOLDERS, 'garden'), 'garden');
    assert.equal(
      pluginToBlame(thrown('file:///state/plugins/garden@former/index.js:1:1'), FOLDERS, 'garden'),
      'garden',
      'a former copy',
    );
    assert.equal(
      pluginToBlame(thrown('x (file:///state/plugins/gar/index.js:1:1)'), FOLDERS, 'garden'),
      'gar',
      'the stack counts more',
    );
  });

  it("is nobody's where the core's own code threw it in what a plugin had begun", () => {
    const core = `Cycle.run (${new URL('../../../core/shares/supervisor.js', import.meta.url).href}:1:1)`;
    const plugin = 'tap (file:///state/plugins/garden@1/index.js:4:9)';
    assert.equal(pluginToBlame(thrown(core, ...TIMER), FOLDERS, 'garden'), undefined);
    assert.equal(pluginToBlame(thrown(core, plugin, core, ...TIMER), FOLDERS, 'garden'), undefined);
    assert.equal(pluginToBlame(thrown(plugin, core, ...TIMER), FOLDERS), undefined);
    assert.equal(pluginToBlame(thrown(plugin, core, ...TIMER), FOLDERS, 'gar'), undefined);
    assert.equal(
      pluginToBlame(thrown(plugin, core, ...TIMER), FOLDERS, 'garden'),
      'garden',
      "a timer of the core's clock",
    );
  });
});

describe("the place in a plugin's own code", () => {
  const own = (error: unknown): string => ownPlaceOf(error, [...FOLDERS.values()]);

  it('is that of the first frame in its folder, or of a cause, not in its packages', () => {
    const library = 'dig (file:///state/plugins/garden@1/node_modules/spade/index.js:9:9)';
    const frame = 'async plant (file:///state/plugins/garden@1/lib/beds.js:3:7)';
    assert.equal(own(thrown(library, frame, ...TIMER)), ' (at lib/beds.js:3:7)');
    assert.equal(own(thrown('x (file:///state/plugins/o%20d%231/index.js:1:2)')), ' (at index.js:1:2)');
    const wrapped = thrown('scope (file:///opt/mk/dist/core/scope.js:1:1)');
    wrapped.cause = thrown(frame);
    assert.equal(own(wrapped), ' (at lib/beds.js:3:7)');
  });

  it('is nowhere in what has none', () => {
    for (const error of [thrown(), thrown(...TIMER), ...Object.values(ODD_THROWS)])
      assert.equal(own(error), '');
  });
});
