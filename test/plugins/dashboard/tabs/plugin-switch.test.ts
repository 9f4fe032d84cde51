import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { withPluginSwitched } from '../../../../plugins/dashboard/tabs/plugin-switch.ts';

describe('switching a plugin in the text', () => {
  const cases: readonly (readonly [what: string, before: string, after: string])[] = [
    [
      'changes the key where it stands, notes kept',
      'a = 1\n[plugins.warmup] # mine\n# on\nenabled = true # yes\nx = 1\n[b]\nenabled = true\n',
      'a = 1\n[plugins.warmup] # mine\n# on\nenabled = false # yes\nx = 1\n[b]\nenabled = true\n',
    ],
    [
      "adds the key to the plugin's table",
      '[plugins.warmup]\nx = 1\n[b]\nenabled = true\n',
      '[plugins.warmup]\nenabled = false\nx = 1\n[b]\nenabled = true\n',
    ],
    ['adds the table at the end', 'a = 1', 'a = 1\n\n[plugins.warmup]\nenabled = false\n'],
    [
      'takes no other plugin for it',
      '[plugins.warmup-more]\nenabled = true\n',
      '[plugins.warmup-more]\nenabled = true\n\n[plugins.warmup]\nenabled = false\n',
    ],
    [
      'knows a quoted name',
      '[ plugins . "warmup" ]\nenabled=true\n',
      '[ plugins . "warmup" ]\nenabled= false\n',
    ],
  ];
  for (const [what, before, after] of cases)
    it(what, () => assert.equal(withPluginSwitched(before, 'warmup', false), after));

  it('comes back to the same text', () => {
    const text = '[plugins.warmup]\nenabled = true\n';
    assert.equal(withPluginSwitched(withPluginSwitched(text, 'warmup', false), 'warmup', true), text);
  });
});
