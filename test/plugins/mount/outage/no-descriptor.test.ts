import assert from 'node:assert/strict';
import { it } from 'node:test';
import { withoutDescriptors } from '../../../support/platform/without-descriptors.ts';

it('folders of a NAS that is away are not denied without a free file descriptor, and the daemon lives', async () => {
  const modules = {
    createClock: 'core/platform/clock.js',
    UnreadableFolders: 'plugins/mount/outage/unreadable-folders.js',
  };
  const script = `
    new UnreadableFolders({
      shareName: 's', mountPoint: '/', source: 's', clock: createClock(), end: new AbortController().signal,
      mountTable: { find: async () => ({ source: 's' }) },
      log: { warn: ({ reason }) => console.log(reason) },
    }).set('doubtful');`;
  const [reason, last] = await withoutDescriptors(modules, { script });
  assert.match(reason ?? '', /^spawn .* EMFILE$/);
  assert.equal(last, 'lives');
});
