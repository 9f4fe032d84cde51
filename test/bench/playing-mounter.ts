/**
 * The text of a plugin that plays mounts: it mounts nothing, and gives other figures at each poll, with which every
 * share's card changes. All else is the real daemon. `GET /ext/playing-mounter/polls` tells when the first share was
 * polled, in milliseconds.
 */
export const PLAYING_MOUNTER = `import { definePlugin } from 'mountkeeper';

const polls = [];
const nothing = async () => undefined;
const none = { count: 0, bytes: 0, paths: [] };

function plan({ share, connection }) {
  const identity = connection.name + ':' + share.remote_path;
  return { mountPoint: share.mount_point, identity, fingerprint: identity };
}

function mountOf(spec) {
  const number = Number(spec.share.name.split(' ').at(-1));
  let round = 0;
  return {
    shareName: spec.share.name, plan: plan(spec), rcPort: 5572, pid: 1, adopted: false,
    exited: new Promise(() => undefined),
    stats: async () => {
      round += 1;
      if (number === 0) polls.push(performance.now());
      const step = (number * 37 + round * 101) % 997;
      return { cacheBytes: step * 1048576, dirtyFiles: step % 5, dirtyBytes: (step % 5) * 4194304,
        erroredFiles: 0, speed: step * 1024, transfers: step % 4, errors: 0, uploading: true, uploadedBytes: 0,
        oldestDirtyAt: Date.now() - 60000 };
    },
    checkRemote: nothing, checkAlive: nothing, setBandwidth: nothing, freeze: nothing, flush: nothing,
    refreshDirectories: async () => ({ ok: 1, failed: [] }),
    unmount: nothing, kill: nothing, pending: async () => none, release: () => undefined,
  };
}

export default definePlugin({
  name: 'playing-mounter', version: '1.0.0', apiVersion: 1, description: 'Plays mounts.',
  register(ctx) {
    ctx.provide('mounter', () => ({
      plan, probe: nothing, mount: async (spec) => mountOf(spec), adopt: async () => [],
      pending: async () => none, cached: async () => [],
    }));
    ctx.route({ method: 'GET', path: '/polls', handler: () => polls.splice(0) });
  },
});
`;
