/**
 * To be loaded before `node:test`. Node's test runner follows each promise of the process with async hooks, to tell
 * whose it is when something fails beside all tests: where one process has a thousand tests, a third of its
 * processor time (20.20, by --cpu-prof). From here on the runner hears of its tests alone, by which `it` finds the
 * `describe` around it. What nobody catches ends the process then, in place of one test; both are a failure.
 */
import hooks from 'node:async_hooks';

const { createHook } = hooks;

hooks.createHook = (callbacks) => {
  const { init, destroy } = callbacks;
  if (!init || !destroy) return createHook(callbacks);
  return createHook({
    init(id, type, trigger, resource) {
      if (type === 'Test') init(id, type, trigger, resource);
    },
  });
};
